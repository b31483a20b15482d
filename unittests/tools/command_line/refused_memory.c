/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded into a program: refuses allocations. For glibc, whose own names of these functions it uses.
 *   REFUSED_ALLOCATION=N    the allocation with this number, and no other
 *   COUNT_ALLOCATIONS=PATH  their number is written there at the end
 *   REFUSAL_CONTROL=PATH    a file with a `struct refusals`, which the test changes while the program runs */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

struct refusals {           /* as in serve_refused_memory_test.cpp */
  atomic_llong allocations; /* that were wanted */
  atomic_llong first, end;  /* refused: those with first <= number < end */
};

static struct refusals own = {0, -1, -1};
static struct refusals *refused = &own;
static atomic_int is_ready;

__attribute__((constructor)) static void begin(void) {
  const char *const number = getenv("REFUSED_ALLOCATION"), *const control = getenv("REFUSAL_CONTROL");
  if (number != NULL) {
    own.first = atoll(number);
    own.end = own.first + 1;
  }
  const int fd = control != NULL ? open(control, O_RDWR | O_CLOEXEC) : -1;
  void *const mapped = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof own, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (fd >= 0)
    close(fd);
  if (mapped != MAP_FAILED)
    refused = mapped;
  atomic_store(&is_ready, 1);
}

__attribute__((destructor)) static void end(void) {
  const char *const path = getenv("COUNT_ALLOCATIONS");
  atomic_store(&is_ready, 0);
  FILE *const file = path != NULL ? fopen(path, "w") : NULL;
  if (file != NULL) {
    fprintf(file, "%lld", atomic_load(&refused->allocations));
    fclose(file);
  }
}

static int is_refused(void) {
  if (atomic_load(&is_ready) == 0)
    return 0;
  const long long number = atomic_fetch_add(&refused->allocations, 1);
  if (number < atomic_load(&refused->first) || number >= atomic_load(&refused->end))
    return 0;
  errno = ENOMEM;
  return 1;
}
void *malloc(size_t size) { return is_refused() ? NULL : __libc_malloc(size); }
void *calloc(size_t number, size_t size) { return is_refused() ? NULL : __libc_calloc(number, size); }
void *realloc(void *old, size_t size) { return is_refused() ? NULL : __libc_realloc(old, size); }
void *aligned_alloc(size_t align, size_t size) { return is_refused() ? NULL : __libc_memalign(align, size); }
int posix_memalign(void **out, size_t align, size_t size) {
  if (is_refused())
    return ENOMEM;
  *out = __libc_memalign(align, size);
  return *out != NULL ? 0 : ENOMEM;
}
