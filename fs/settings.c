/* settings.c - where the mount's settings live: apart from main.c, so that tests of a single file
 * link without it. */
#include "fs/settings.h"

struct settings settings;
