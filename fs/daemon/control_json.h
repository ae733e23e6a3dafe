/* control_json.h - pieces of the JSON that the daemon sends to `eddy`, and writes into reports (control.c, control_stats.c). */
#ifndef EDDY_FS_DAEMON_CONTROL_JSON_H
#define EDDY_FS_DAEMON_CONTROL_JSON_H

#include <jansson.h>
#include <stdint.h>

/* {"error": text} */
json_t *control_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* o[key] = value */
void control_put(json_t *o, const char *key, uint64_t value);
void control_put_text(json_t *o, const char *key, const char *text); /* any bytes: escaped */
void control_put_id(json_t *o, const char *key, uint64_t id);        /* 16 hexadecimal digits */
/* {NAME: NUMBER} of this node (figures.h); {NAME: {"count", "sum_ns", "buckets"}} of all operations so far. */
json_t *control_figures(void);
json_t *control_operations(void);

#endif
