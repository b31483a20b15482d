/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded into a program: allocation number REFUSED_ALLOCATION is refused, and no other. With COUNT_ALLOCATIONS=PATH
 * their number is written there at the end. For glibc, whose own names of these functions it uses. */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

static atomic_long count;
static long refused = -1;
static atomic_int is_ready;

__attribute__((constructor)) static void begin(void) {
  const char *const number = getenv("REFUSED_ALLOCATION");
  if (number != NULL)
    refused = atol(number);
  atomic_store(&is_ready, 1);
}

__attribute__((destructor)) static void end(void) {
  const char *const path = getenv("COUNT_ALLOCATIONS");
  atomic_store(&is_ready, 0);
  FILE *const file = path != NULL ? fopen(path, "w") : NULL;
  if (file != NULL) {
    fprintf(file, "%ld", atomic_load(&count));
    fclose(file);
  }
}

static int is_refused(void) {
  if (atomic_load(&is_ready) == 0 || atomic_fetch_add(&count, 1) != refused)
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
