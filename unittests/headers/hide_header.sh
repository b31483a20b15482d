# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# For scripts that compile as on a machine without a certain header.
# hide_header <header> <scratch directory> <compiler> <option>...: sets the array `hiding` to the options with which the
# compiler does not find the header, because it does not search the system folders that have it. Checks that.
hide_header() {
  local header=$1 scratch=$2 folder language=c
  unset CPATH # its folders are searched in any case
  shift 2
  hiding=(-nostdinc)
  [[ " $* " == *" c++ "* ]] && hiding+=(-nostdinc++) && language=c++
  for folder in $("$1" -x "$language" -E -v /dev/null 2>&1 >/dev/null |
    sed -n '/^#include <...> search starts here/,/^End of search list/s/^ //p'); do
    [ -e "$folder/$header" ] || hiding+=(-isystem "$folder")
  done
  printf '#include <stdint.h>\n#if __has_include(<%s>)\n#error\n#endif\nextern int unit;\n' "$header" \
    >"$scratch/hidden.c"
  "$@" "${hiding[@]}" -c "$scratch/hidden.c" -o "$scratch/hidden.o" || {
    echo "$header is not hidden"
    exit 1
  }
}
