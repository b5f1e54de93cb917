#!/bin/sh
# Runs a compiler's command after removing its previous output. With precompiled headers the
# compiler would otherwise read the previous ones instead of the headers. ccache asks the compiler
# what they contain, and would not notice that a generated header has changed.
before=""
for argument; do
  [ "$before" != -o ] || rm -f "$argument"
  before="$argument"
done
exec "$@"
