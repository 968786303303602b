#!/bin/sh
# Starts the engine program of Bitcask, if there is what it needs.
has_bitcask() {
    command -v escript >/dev/null &&
        erl -noshell -eval 'halt(case code:lib_dir(bitcask) of {error, _} -> 1; _ -> 0 end).'
}
has_bitcask || {
    echo "Bitcask is not installed; apt-get install erlang-bitcask" >&2
    exit 3
}
ERL_CRASH_DUMP=/dev/null exec escript "${0%/*}/bench.escript" "$@"
