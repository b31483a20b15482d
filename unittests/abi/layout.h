/* SPDX-License-Identifier: Apache-2.0 */
/* One row of the layout table: a size, offset or value, and the expected one. */
#ifndef CUDAQ_UNITTESTS_ABI_LAYOUT_H
#define CUDAQ_UNITTESTS_ABI_LAYOUT_H

typedef struct layout_row {
  const char *what;
  long long is;
  long long should_be;
} layout_row;

#ifdef __cplusplus
extern "C"
#else
extern
#endif
    const layout_row layout_seen_by_c[]; /* ends with a row whose `what` is NULL */

#endif
