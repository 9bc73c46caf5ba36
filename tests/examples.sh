#!/bin/sh
# examples.sh BUILD: installs the meson build of the library in the folder BUILD for a moment, builds the
# examples against what was installed, as strangers would, and runs them. C, C++ and Rust must print the
# same. Languages without a compiler here are left out, and say so.
set -eu
build=$(cd "$1" && pwd)
root=$(cd "$(dirname "$0")/.." && pwd)
there=$(mktemp -d)
trap 'rm -rf "$there"' EXIT
PATH=$PATH:${CARGO_HOME:-$HOME/.cargo}/bin
strict="-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror"
failed=0

fail() {
  echo "examples: $*" >&2
  failed=1
}

# What one of them prints; the first is what the others are held against.
run() {
  name=$1
  shift
  mkdir -p "$there/$name"
  "$@" >"$there/$name/printed" || fail "$name ended with $?"
  [ -f "$there/expected" ] || cp "$there/$name/printed" "$there/expected"
  cmp "$there/expected" "$there/$name/printed" || fail "$name prints something else"
  echo "examples: $name ran"
}

meson install -C "$build" --destdir "$there/root" --quiet
pc=$(find "$there/root" -name rpo.pc)
prefix=$(sed -n 's/^prefix=//p' "$pc")
header=$(dirname "$(find "$there/root" -name rpo.h)")
lib=$(dirname "$(find "$there/root" -name 'librpo.so' -o -name 'librpo.dylib')")
bin=$(dirname "$(find "$there/root" -name rpo-predict)")
export LD_LIBRARY_PATH="$lib" DYLD_LIBRARY_PATH="$lib"

if command -v pkg-config >/dev/null; then
  config="pkg-config --define-variable=prefix=$there/root$prefix"
  export PKG_CONFIG_PATH="$(dirname "$pc")"
  flags=$($config --cflags --libs rpo)
  static="$($config --cflags rpo) $lib/librpo.a $($config --static --libs-only-l --libs-only-other rpo \
    | sed 's/-lrpo//')"
else
  echo "examples: pkg-config is not installed: plain flags"
  flags="-I$header -L$lib -lrpo"
  static=
fi

# shellcheck disable=SC2086 # the flags are several words
{
  c=$root/examples/c
  cc=${CC:-cc}
  for example in forest boosting; do
    $cc -std=c99 $strict "$c/$example.c" $flags -lm -o "$there/$example"
  done
  both() { "$1/forest$2" "$there/forest.rpo" && "$1/boosting$2" "$there/boosting.rpo"; }
  run c both "$there" ""
  if [ -n "$static" ]; then
    for example in forest boosting; do
      $cc -std=c99 $strict "$c/$example.c" $static -lm -o "$there/$example-static"
    done
    LD_LIBRARY_PATH= run c-static both "$there" -static
  fi

  cxx=${CXX:-c++}
  if command -v "${cxx%% *}" >/dev/null; then
    $cxx -std=c++17 $strict "$root/examples/cpp/models.cpp" $flags -o "$there/models-cpp"
    run cpp "$there/models-cpp" "$there"
  else
    echo "examples: no C++ compiler: left out"
  fi

  if command -v rustc >/dev/null && rustc --version >/dev/null 2>&1; then
    rustc --edition 2021 -D warnings -C opt-level=2 "$root/examples/rust/models.rs" \
      -L "native=$lib" -o "$there/models-rust"
    run rust "$there/models-rust" "$there"
  else
    echo "examples: no rustc: left out"
  fi
}

# The program, on a model of theirs.
"$bin/rpo-predict" --info "$there/boosting.rpo" | grep -q "^outputs: 30$" || fail "rpo-predict --info"
printf '1 1:0.9 8:0.9\n' | "$bin/rpo-predict" -1 -k 2 "$there/forest.rpo" - | grep -q ':.* .*:' ||
  fail "rpo-predict"
exit "$failed"
