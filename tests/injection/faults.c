/* Makes the n-th system call on files below a folder fail, in the process that arms it.

A filter of the kernel (seccomp) sends a signal for every call of the kinds below, whoever makes it: Python, polars,
numpy or the C library. The handler makes the call itself, or fails it. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

enum { NOSPACE, FULL, IO, BROKEN, INTERRUPTED, SHORT, KILL, N_FAULTS };  /* FULL and BROKEN last */
enum { OPENS, MAKES, READS, WRITES, SYNCS, NAMES, CUTS, LOCKS, MAPS, LOOKS };  /* sorts of calls */

struct state {  /* shared with the process that watches */
    int64_t counts[N_FAULTS];  /* calls so far to which each fault applies */
    int64_t at;                /* number of the call that fails; 0 for none */
    int64_t hit;               /* whether it has failed */
    char call[24], path[240]; /* its name, and the path below the folder */
};

static struct state *state;
static int fault;
static char prefix[1024];
static size_t prefix_size;

long raw_call(long number, long a, long b, long c, long d, long e, long f);
extern char raw_end[];

#if defined(__x86_64__)
__asm__(".text\n.globl raw_call\nraw_call:\n"
        "mov %rdi, %rax\nmov %rsi, %rdi\nmov %rdx, %rsi\nmov %rcx, %rdx\nmov %r8, %r10\nmov %r9, %r8\n"
        "mov 8(%rsp), %r9\nsyscall\n.globl raw_end\nraw_end:\nret\n");
#define ARGUMENTS(c) {c->gregs[REG_RDI], c->gregs[REG_RSI], c->gregs[REG_RDX], \
                      c->gregs[REG_R10], c->gregs[REG_R8], c->gregs[REG_R9]}
#define ANSWER(c) c->gregs[REG_RAX]
#elif defined(__aarch64__)
__asm__(".text\n.globl raw_call\nraw_call:\n"
        "mov x8, x0\nmov x0, x1\nmov x1, x2\nmov x2, x3\nmov x3, x4\nmov x4, x5\nmov x5, x6\n"
        "svc #0\n.globl raw_end\nraw_end:\nret\n");
#define ARGUMENTS(c) {(long)c->regs[0], (long)c->regs[1], (long)c->regs[2], \
                      (long)c->regs[3], (long)c->regs[4], (long)c->regs[5]}
#define ANSWER(c) c->regs[0]
#else
#error "no code for this processor"
#endif

#define CALL(name, sort) {SYS_##name, sort, #name}
static const struct { int number, sort; const char *name; } CALLS[] = {
#ifdef SYS_open
    CALL(open, OPENS), CALL(creat, OPENS), CALL(mkdir, MAKES), CALL(rename, NAMES), CALL(unlink, NAMES),
    CALL(rmdir, NAMES), CALL(link, NAMES),
#endif
#ifdef SYS_renameat
    CALL(renameat, NAMES),
#endif
    CALL(openat, OPENS), CALL(mkdirat, MAKES), CALL(renameat2, NAMES), CALL(unlinkat, NAMES), CALL(linkat, NAMES),
    CALL(read, READS), CALL(pread64, READS), CALL(readv, READS), CALL(preadv, READS),
    CALL(getdents64, LOOKS),
    CALL(write, WRITES), CALL(pwrite64, WRITES), CALL(writev, WRITES), CALL(pwritev, WRITES),
    CALL(copy_file_range, WRITES), CALL(sendfile, WRITES),
    CALL(fsync, SYNCS), CALL(fdatasync, SYNCS), CALL(ftruncate, CUTS), CALL(fallocate, CUTS), CALL(flock, LOCKS),
    CALL(mmap, MAPS),
};
#define N_CALLS (sizeof CALLS / sizeof *CALLS)

static int below(const char *path) {
    return !strncmp(path, prefix, prefix_size) && (path[prefix_size] == '/' || path[prefix_size] == 0);
}

/* The path behind a handle, or of the current folder. */
static void path_of(int handle, char *path, size_t size) {
    char link[40] = "/proc/self/cwd";
    if (handle != AT_FDCWD) {
        char digits[12];
        int n = 0;
        strcpy(link, "/proc/self/fd/");
        do digits[n++] = '0' + handle % 10; while (handle /= 10);
        char *end = link + strlen(link);
        while (n) *end++ = digits[--n];
        *end = 0;
    }
    long got = raw_call(SYS_readlinkat, AT_FDCWD, (long)link, (long)path, (long)size - 1, 0, 0);
    path[got < 0 ? 0 : got] = 0;
}

static void note(char *path, const char *name, size_t size) {
    size_t used = strlen(path);
    if (name[0] == '/') used = 0;
    else if (used < size - 1) path[used++] = '/';
    strncpy(path + used, name, size - used - 1);
    path[size - 1] = 0;
}

/* Whether a call is on a file below the folder; its path. */
static int concerned(int number, const long *a, char *path, size_t size) {
    path[0] = 0;
    switch (number) {
#ifdef SYS_open
    case SYS_open: case SYS_creat: case SYS_mkdir: case SYS_rename: case SYS_unlink: case SYS_rmdir: case SYS_link:
        if (*(const char *)a[0] != '/') path_of(AT_FDCWD, path, size);
        note(path, (const char *)a[0], size);
        return below(path);
#endif
    case SYS_openat: case SYS_mkdirat: case SYS_renameat2: case SYS_unlinkat: case SYS_linkat:
#ifdef SYS_renameat
    case SYS_renameat:
#endif
        if (*(const char *)a[1] != '/') path_of((int)a[0], path, size);
        note(path, (const char *)a[1], size);
        return below(path);
    case SYS_copy_file_range:
        path_of((int)a[2], path, size);
        return below(path);
    case SYS_mmap:
        if ((int)a[4] < 0) return 0;
        path_of((int)a[4], path, size);
        return below(path);
    default:
        path_of((int)a[0], path, size);
        return below(path);
    }
}

/* Whether a fault may come of a sort of calls: what a disk, a signal or a kill can do. */
static int applies(int which, int sort, int making) {
    int space = sort == MAKES || sort == WRITES || sort == CUTS || (sort == OPENS && making);
    switch (which) {
    case NOSPACE: return space || sort == SYNCS || sort == NAMES;
    case FULL: return space;
    case INTERRUPTED: return sort != MAKES && sort != NAMES && sort != MAPS && sort != LOOKS;
    case SHORT: return sort == READS || sort == WRITES;
    case KILL: case BROKEN: return sort != READS && sort != MAPS && sort != LOOKS && (sort != OPENS || making);
    default: return 1;
    }
}

/* Make half of a read or write. */
static long halved(int number, const long *a) {
    long b[6];
    memcpy(b, a, sizeof b);
    if (number == SYS_readv || number == SYS_writev || number == SYS_preadv || number == SYS_pwritev) {
        struct iovec part = *(const struct iovec *)a[1];
        part.iov_len = (part.iov_len + 1) / 2;
        b[1] = (long)&part, b[2] = 1;
        return raw_call(number, b[0], b[1], b[2], b[3], b[4], b[5]);
    }
    int size = number == SYS_copy_file_range ? 4 : number == SYS_sendfile ? 3 : 2;
    b[size] = (b[size] + 1) / 2;
    return raw_call(number, b[0], b[1], b[2], b[3], b[4], b[5]);
}

static long failed(int number, int sort, const long *a) {
    if (fault == KILL) {
        raw_call(SYS_kill, raw_call(SYS_getpid, 0, 0, 0, 0, 0, 0), SIGKILL, 0, 0, 0, 0);
        for (;;) raw_call(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
    }
    if (fault == SHORT) return halved(number, a);
    if (sort == MAPS) return -ENOMEM;
    return fault == INTERRUPTED ? -EINTR : fault == IO || fault == BROKEN ? -EIO : -ENOSPC;
}

static void trapped(int signal, siginfo_t *info, void *context) {
    mcontext_t *machine = &((ucontext_t *)context)->uc_mcontext;
    long a[6] = ARGUMENTS(machine);
    int number = info->si_syscall, sort = LOOKS, making = 0;
    const char *name = "";
    char path[2048];
    (void)signal;
    for (size_t n = 0; n < N_CALLS; n++)
        if (CALLS[n].number == number) sort = CALLS[n].sort, name = CALLS[n].name;
    if (number == SYS_openat && a[2] & O_DIRECTORY) sort = LOOKS;
    if (number == SYS_openat) making = (a[2] & (O_CREAT | O_TRUNC | O_WRONLY | O_RDWR)) != 0;
#ifdef SYS_open
    if (number == SYS_open) making = (a[1] & (O_CREAT | O_TRUNC | O_WRONLY | O_RDWR)) != 0;
    if (number == SYS_creat) making = 1;
#endif
    if (concerned(number, a, path, sizeof path)) {
        int64_t count = 0;
        for (int which = 0; which < N_FAULTS; which++)
            if (applies(which, sort, making)) {
                int64_t now = __atomic_add_fetch(&state->counts[which], 1, __ATOMIC_SEQ_CST);
                if (which == fault) count = now;
            }
        int again = state->hit && (fault == BROKEN || (fault == FULL && count));
        if (again || (count && count == state->at)) {
            if (!state->hit) {
                state->hit = 1;
                strncpy(state->call, name, sizeof state->call - 1);
                strncpy(state->path, path + prefix_size, sizeof state->path - 1);
            }
            ANSWER(machine) = failed(number, sort, a);
            return;
        }
    }
    ANSWER(machine) = raw_call(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* Arm this process: calls on files below `folder` are counted in `shared`, and the one with its number fails. */
int arm(struct state *shared, int which, const char *folder) {
    struct sock_filter filter[8 + N_CALLS];
    unsigned n = 0, at = 0;
    state = shared, fault = which;
    strncpy(prefix, folder, sizeof prefix - 1);
    prefix_size = strlen(prefix);
    struct sigaction action = {.sa_sigaction = trapped, .sa_flags = SA_SIGINFO | SA_NODEFER};
    if (sigaction(SIGSYS, &action, 0)) return errno;
#define LOAD(field) (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define EQUAL(value, yes, no) (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, yes, no)
    filter[n++] = LOAD(instruction_pointer);  /* the lower half; calls of the handler pass */
    filter[n++] = EQUAL((uint32_t)(uintptr_t)raw_end, N_CALLS + 1, 0);
    filter[n++] = LOAD(nr);
    for (; at < N_CALLS; at++) filter[n++] = EQUAL((uint32_t)CALLS[at].number, N_CALLS - at, 0);
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP);
    struct sock_fprog program = {.len = n, .filter = filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) return errno;
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) ? errno : 0;
}
