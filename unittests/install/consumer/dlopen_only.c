/* SPDX-License-Identifier: Apache-2.0 */
/* Loads the library by name and checks its version. Usage: dlopen_only <library> <major>.<minor>.<patch> */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
  unsigned major, minor, patch;
  if (argc != 3 || sscanf(argv[2], "%u.%u.%u", &major, &minor, &patch) != 3)
    return 2;
  void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  /* ISO C cannot convert an object pointer to a function pointer. */
  uint32_t (*version)(void);
  void *symbol = dlsym(library, "cudaq_realtime_version");
  if (!symbol) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  memcpy(&version, &symbol, sizeof version);
  printf("version 0x%06x, headers %u.%u.%u\n", version(), major, minor, patch);
  if (version() != (major << 16 | minor << 8 | patch))
    return 1;
  return dlclose(library);
}
