/* For programs under ThreadSanitizer.
 *
 * libuv closes descriptors by syscall(SYS_close), which ThreadSanitizer does not see: the next thread that is given the
 * same number for a file of its own then seems to race with all that libuv did by it. So syscall() is ours there, and a
 * close goes the way that is seen.
 */
#include <dlfcn.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef long (*syscall_fn)(long number, ...);

long syscall(long number, ...)
{
    static _Atomic(syscall_fn) theirs;
    long arg[6];
    va_list args;

    va_start(args, number);
    for (int i = 0; i < 6; i++)
        arg[i] = va_arg(args, long);
    va_end(args);
    if (number == SYS_close)
        return close((int)arg[0]);
    if (!theirs)
        theirs = (syscall_fn)dlsym(RTLD_NEXT, "syscall");
    return theirs(number, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
}
