#!/usr/bin/env escript
%%! -noinput
%% An engine program of the lab in Erlang: Bitcask, Riak's storage engine (Debian's erlang-bitcask).
%%
%% Everything that it does is in lab/WORKLOADS.md. Bitcask lets one process write a database, and
%% any number read it: with several threads the writes go to the process that opened it first, as
%% those of a partition do in Riak.
-mode(compile).
-compile([inline]).

-define(MASK, 16#FFFFFFFFFFFFFFFF).
-define(STEP, 16#9E3779B97F4A7C15).
-define(MARK, "LAB-BENCHMARK").
%% Buckets of latencies for each power of two of nanoseconds.
-define(STEPS, 32).
-define(BUCKETS, 64 * ?STEPS).
%% Riak asks so often whether files are worth merging, in nanoseconds.
-define(MERGE_EVERY, 180_000_000_000).

%% The settings of a run.
-record(flags, {
    benchmarks = "", db = "", num = 1_000_000, reads = 0, key_size = 16, value_size = 100,
    value_size_max = 0, threads = 1, rate = 0, write_rate = 0, duration = 10.0, interval = 0.0,
    time_limit = 0.0, seed = 301, variant = "", json = false
}).

%% Where values come from.
-record(pool, {text, size, at = 0}).

main(Arguments) ->
    ok = logger:set_primary_config(level, warning),
    ok = logger:remove_handler(default),
    ok = logger:add_handler(errors, logger_std_h, #{config => #{type => standard_error}}),
    case Arguments of
        ["--describe" | _] -> io:put_chars([description(), $\n]);
        ["--version" | _] -> io:put_chars(["bitcask ", version(), $\n]);
        _ -> start(Arguments)
    end,
    halt(0).

start(Arguments) ->
    Flags = parse(Arguments, #flags{}),
    Flags#flags.db =:= "" andalso wrong("--db is missing"),
    ok = application:load(bitcask),
    {ok, _} = application:ensure_all_started(bitcask),
    Pool = pool(Flags),
    try lists:foldl(fun(Name, Db) -> benchmark(Name, Flags, Pool, Db) end, closed, names(Flags)) of
        Db -> close(Db)
    catch
        Class:Reason ->
            io:format(standard_error, "bitcask: ~0p: ~0p~n", [Class, Reason]),
            halt(3)
    end.

names(#flags{benchmarks = Names}) -> string:lexemes(Names, ",").

wrong(Message) ->
    io:format(standard_error, "bitcask: ~s~n", [Message]),
    halt(2).

parse([], Flags) -> Flags;
parse(["--json" | Rest], Flags) -> parse(Rest, Flags#flags{json = true});
parse(["--" ++ Flag | Rest], Flags) ->
    case string:split(Flag, "=") of
        [Name, Value] -> parse(Rest, set(Name, Value, Flags));
        _ -> wrong("--" ++ Flag ++ " has no value")
    end;
parse([Argument | _], _) -> wrong("what is " ++ Argument ++ "?").

set("benchmarks", Value, Flags) -> Flags#flags{benchmarks = Value};
set("db", Value, Flags) -> Flags#flags{db = Value};
set("variant", "", Flags) -> Flags;
set("variant", Value, _) -> wrong("there is no variant " ++ Value);
set("num", Value, Flags) -> Flags#flags{num = max(whole("num", Value), 1)};
set("reads", Value, Flags) -> Flags#flags{reads = whole("reads", Value)};
set("key_size", Value, Flags) -> Flags#flags{key_size = whole("key_size", Value)};
set("value_size", Value, Flags) -> Flags#flags{value_size = whole("value_size", Value)};
set("value_size_max", Value, Flags) -> Flags#flags{value_size_max = whole("value_size_max", Value)};
set("threads", Value, Flags) -> Flags#flags{threads = max(whole("threads", Value), 1)};
set("rate", Value, Flags) -> Flags#flags{rate = number("rate", Value)};
set("write_rate", Value, Flags) -> Flags#flags{write_rate = number("write_rate", Value)};
set("duration", Value, Flags) -> Flags#flags{duration = number("duration", Value)};
set("interval", Value, Flags) -> Flags#flags{interval = number("interval", Value)};
set("time_limit", Value, Flags) -> Flags#flags{time_limit = number("time_limit", Value)};
set("seed", Value, Flags) -> Flags#flags{seed = whole("seed", Value)};
%% Settings that Bitcask has no use for are taken all the same.
set(_, _, Flags) -> Flags.

whole(Name, Value) ->
    case string:to_integer(Value) of
        {Number, ""} when Number >= 0 -> Number;
        _ -> wrong("--" ++ Name ++ ": " ++ Value ++ " is no whole number")
    end.

number(Name, Value) ->
    case {string:to_float(Value), string:to_integer(Value)} of
        {{Number, ""}, _} when Number >= 0 -> Number;
        {_, {Number, ""}} when Number >= 0 -> Number;
        _ -> wrong("--" ++ Name ++ ": " ++ Value ++ " is no number")
    end.

version() ->
    ok = application:load(bitcask),
    {ok, Version} = application:get_key(bitcask, vsn),
    Version.

description() ->
    object([
        {engine, "bitcask"}, {title, "Bitcask"},
        {version, [version(), ", Erlang/OTP ", erlang:system_info(otp_release)]},
        {variants, {list, [[{name, ""}, {title, "Bitcask"}]]}},
        {asynchronous, "the entry is written to its file by write()"},
        {synchronous, "a put, and fsync() by bitcask:sync"},
        {settings, "defaults of the library, which are Riak's: files of 2 GiB, merged if three "
            "fifths of one are dead, a look every three minutes; all keys in memory, nothing is "
            "compressed or cached"},
        {limits, {list, [
            "it keeps no order: there are no scans; the self-test sorts the keys in the program",
            "one process writes: with several threads it does so for all",
            "the program is Erlang's, as are Bitcask and Riak: a random key costs it a microsecond"
        ]}},
        {unsupported, [{Name, Why} || {Name, Why} <- [
            {"readseq", "it keeps no order"}, {"readreverse", "it keeps no order"},
            {"seekrandom", "it keeps no order"}, {"ycsbe", "it keeps no order"},
            {"queue", "it keeps no order"}, {"mixgraph", "it keeps no order"},
            {"fillseqbatch", "it has no batches"}, {"fillrandbatch", "it has no batches"}
        ]]}
    ]).

%% Random numbers: splitmix64.

mix(Z0) ->
    Z1 = ((Z0 bxor (Z0 bsr 30)) * 16#BF58476D1CE4E5B9) band ?MASK,
    Z2 = ((Z1 bxor (Z1 bsr 27)) * 16#94D049BB133111EB) band ?MASK,
    Z2 bxor (Z2 bsr 31).

stream(Seed, Benchmark, Thread) ->
    mix((mix((mix(Seed band ?MASK) + Benchmark) band ?MASK) + Thread) band ?MASK).

next(State0) ->
    State = (State0 + ?STEP) band ?MASK,
    {mix(State), State}.

%% Keys and values.

key(Number, Size) ->
    Digits = integer_to_binary(Number),
    case Size - byte_size(Digits) of
        Missing when Missing > 0 -> <<(binary:copy(<<"0">>, Missing))/binary, Digits/binary>>;
        _ -> Digits
    end.

pool(#flags{seed = Seed, value_size = Least, value_size_max = Most}) ->
    Size = max(1 bsl 20, 16 * max(Least, Most)),
    #pool{text = pieces(stream(Seed, 0, 0), Size, []), size = Size}.

pieces(_, Left, Pieces) when Left =< 0 ->
    Text = iolist_to_binary(lists:reverse(Pieces)),
    binary:part(Text, 0, byte_size(Text) + Left);
pieces(State0, Left, Pieces) ->
    {Half, State} = lists:mapfoldl(
        fun(_, At) -> {Random, Then} = next(At), {32 + Random rem 95, Then} end,
        State0, lists:seq(1, 50)),
    pieces(State, Left - 100, [Half, Half | Pieces]).

value(#pool{text = Text, size = Size, at = At} = Pool, Length) ->
    From = case At + Length > Size of true -> 0; false -> At end,
    {binary:part(Text, From, Length), Pool#pool{at = From + Length}}.

%% The database: `closed`, or the reference of the process that writes.

directory(Flags) -> filename:join(Flags#flags.db, "data").

open(Flags, closed) ->
    Dir = Flags#flags.db,
    ok = filelib:ensure_dir(filename:join(Dir, "data/x")),
    case file:list_dir(Dir) of
        {ok, ["data"]} -> ok = file:write_file(filename:join(Dir, ?MARK), "");
        {ok, _} -> ok
    end,
    Db = bitcask:open(directory(Flags), [read_write]),
    is_reference(Db) orelse error({open, Db}),
    Db;
open(_, Db) -> Db.

close(closed) -> ok;
close(Db) -> bitcask:close(Db).

destroy(Flags, Db) ->
    close(Db),
    Dir = Flags#flags.db,
    case file:list_dir(Dir) of
        {error, enoent} -> ok;
        {ok, []} -> ok;
        {ok, Names} ->
            lists:member(?MARK, Names) orelse error({not_the_labs, Dir}),
            ok = file:del_dir_r(Dir)
    end,
    closed.

%% Merges the files that are worth it, or all of them.
merge(Flags, Db0, all) ->
    % The file that is written to is left alone, and a database that nobody has open refused.
    close(Db0),
    Db = open(Flags, closed),
    ok = bitcask:merge(directory(Flags)),
    % Closing gives up what was merged, and opening removes it.
    close(Db),
    open(Flags, closed);
merge(Flags, Db, due) ->
    case bitcask:needs_merge(Db) of
        {true, Files} -> ok = bitcask:merge(directory(Flags), [], Files);
        false -> ok
    end,
    Db.

drop_from_cache(Dir) ->
    os:cmd("sync"),
    {ok, Names} = file:list_dir(Dir),
    lists:foreach(fun(Name) ->
        case file:open(filename:join(Dir, Name), [read, raw, binary]) of
            {ok, File} -> file:advise(File, 0, 0, dont_need), file:close(File);
            _ -> ok
        end
    end, Names).

%% Benchmarks: number, whether they begin empty, and what they are.

known("fillseq") -> {1, true, {puts, seq}};
known("fillrandom") -> {2, true, {puts, random}};
known("overwrite") -> {3, false, {puts, random}};
known("fillsync") -> {6, true, {synced, random, 100}};
known("fill100K") -> {7, true, {large, seq}};
known("fill100Krandom") -> {8, true, {large, random}};
known("readrandom") -> {11, false, {gets, random}};
known("readmissing") -> {12, false, {gets, missing}};
known("readhot") -> {13, false, {gets, hot}};
known("readwhilewriting") -> {15, false, beside_writer};
known("deleteseq") -> {16, false, {deletes, seq}};
known("deleterandom") -> {17, false, {deletes, random}};
known("compact") -> {18, false, {once, fun(Flags, Db) -> merge(Flags, Db, all) end}};
known("waitcompact") -> {19, false, {once, fun(Flags, Db) ->
    bitcask:sync(Db), merge(Flags, Db, due) end}};
known("fillseqsync") -> {20, true, {synced, seq, 100}};
known("cold") -> {22, false, cold};
known("readpareto") -> {23, false, {timed, 0, {pareto, 0.2}}};
known("mixedpareto") -> {24, false, {timed, 10, {pareto, 0.2}}};
known("writepareto") -> {25, false, {timed, 100, {pareto, 0.0001}}};
known("selftest") -> {31, true, selftest};
known("readhit") -> {43, false, {gets, put}};
known("readwriterandom") -> {33, false, {mixed, 50}};
known(_) -> unknown.

benchmark(Name, Flags, Pool, Db0) ->
    case known(Name) of
        unknown ->
            unsupported(Name, "Bitcask or its program has no such thing"),
            Db0;
        {_, _, What} when Flags#flags.rate > 0, What =/= selftest ->
            unsupported(Name, "its program has no open loop"),
            Db0;
        {Number, Empty, What} ->
            Db1 = case Empty of true -> destroy(Flags, Db0); false -> Db0 end,
            Db2 = open(Flags, Db1),
            ok = file:write_file("/proc/self/clear_refs", "5"),
            Before = resources(),
            {Db, Begin, Result} = run(Name, Number, What, Flags, Pool, Db2),
            End = erlang:monotonic_time(nanosecond),
            report(Name, Flags, max(End - Begin, 1) / 1.0e9, Before, Result),
            Db
    end.

unsupported(Name, Why) -> say([{benchmark, Name}, {engine, "bitcask"}, {unsupported, Why}]).

%% Does one, and returns the database, when it began, and what came of it.
run(_, _, {once, Do}, Flags, _, Db0) ->
    Begin = erlang:monotonic_time(nanosecond),
    Db = Do(Flags, Db0),
    {Db, Begin, #{ops => 1}};
run(_, _, cold, Flags, _, Db0) ->
    close(Db0),
    drop_from_cache(directory(Flags)),
    Begin = erlang:monotonic_time(nanosecond),
    Db = open(Flags, closed),
    {Db, Begin, #{ops => 1}};
run(_, _, selftest, Flags, Pool, Db0) ->
    Begin = erlang:monotonic_time(nanosecond),
    {Db, Digest} = selftest(Flags, Pool, Db0),
    {Db, Begin, #{ops => 20_000, digest => Digest}};
run(Name, Number, What, Flags, Pool, Db) ->
    {Threads, Plan} = plan(What, Number, Flags),
    Shared = shared(),
    Owner = self(),
    Begin = case Threads of
        1 ->
            Then = erlang:monotonic_time(nanosecond),
            Reporter = reporter(Name, Flags, Shared, Then),
            Done = work(Plan(0, 1), {own, Db}, Flags, Pool, Shared, Then),
            stop(Reporter),
            put(done, [Done]),
            Then;
        _ ->
            Workers = [spawn_link(fun() ->
                Reader = bitcask:open(directory(Flags)),
                Owner ! {ready, self()},
                receive {go, Then} ->
                    Own = Plan(Thread, Threads),
                    Owner ! {done, self(), work(Own, {Owner, Reader}, Flags, Pool, Shared, Then)}
                end,
                bitcask:close(Reader)
            end) || Thread <- lists:seq(0, Threads - 1)],
            [receive {ready, Worker} -> ok end || Worker <- Workers],
            Then = erlang:monotonic_time(nanosecond),
            Reporter = reporter(Name, Flags, Shared, Then),
            [Worker ! {go, Then} || Worker <- Workers],
            Readers = case What of beside_writer -> Threads - 1; _ -> Threads end,
            put(done, serve(Flags, Db, Then, Workers, Readers, [])),
            stop(Reporter),
            Then
    end,
    Done1 = erase(done),
    Counted = [Tally || {Tally, counts} <- Done1],
    {Db, Begin, #{
        ops => lists:sum([Ops || {Ops, _, _} <- Counted]),
        found => case reads(What) of
            true -> lists:sum([Found || {_, Found, _} <- Counted]);
            false -> none
        end,
        truncated => lists:any(fun({_, _, Truncated}) -> Truncated end, Counted),
        beside => [Ops || {{Ops, _, _}, beside} <- Done1],
        latencies => Shared
    }}.

reads({gets, _}) -> true;
reads(beside_writer) -> true;
reads({timed, Writes, _}) -> Writes < 100;
reads({mixed, _}) -> true;
reads(_) -> false.

%% Writes for the others until all have ended. A writer that is not counted ends with the last of
%% those that are.
serve(_, _, _, [], _, Done) -> Done;
serve(Flags, Db, Checked, Workers, Counted, Done) ->
    receive
        {write, Worker, Key, Value, Synced} ->
            ok = write({own, Db}, Key, Value, Synced),
            Worker ! written,
            serve(Flags, Db, look_for_merge(Flags, Db, Checked), Workers, Counted, Done);
        {done, Worker, {_, counts} = Result} ->
            Left = Workers -- [Worker],
            [Other ! stop || Counted =:= 1, Other <- Left],
            serve(Flags, Db, Checked, Left, Counted - 1, [Result | Done]);
        {done, Worker, Result} ->
            serve(Flags, Db, Checked, Workers -- [Worker], Counted, [Result | Done])
    end.

look_for_merge(Flags, Db, Checked) ->
    case erlang:monotonic_time(nanosecond) of
        Now when Now - Checked >= ?MERGE_EVERY ->
            spawn_merge(Flags, bitcask:needs_merge(Db)),
            Now;
        _ -> Checked
    end.

%% Beside the writer, as Riak does.
spawn_merge(Flags, {true, Files}) ->
    Dir = directory(Flags),
    spawn(fun() -> bitcask:merge(Dir, [], Files) end);
spawn_merge(_, false) -> ok.

write({own, Db}, Key, delete, false) -> bitcask:delete(Db, Key);
write({own, Db}, Key, Value, false) -> bitcask:put(Db, Key, Value);
write({own, Db}, Key, Value, true) -> ok = bitcask:put(Db, Key, Value), bitcask:sync(Db);
write({Owner, _}, Key, Value, Synced) ->
    Owner ! {write, self(), Key, Value, Synced},
    receive written -> ok end.

%% How many threads there are, and what each of them does.
plan({puts, Keys}, Number, Flags) ->
    each(Number, Flags, total(Flags#flags.num), put, keys(Keys, Flags), false);
plan({deletes, Keys}, Number, Flags) ->
    each(Number, Flags, total(Flags#flags.num), delete, keys(Keys, Flags), false);
plan({synced, Keys, Part}, Number, Flags) ->
    each(Number, Flags, total(max(Flags#flags.num div Part, 1)), put, keys(Keys, Flags), true);
plan({large, Keys}, Number, Flags) ->
    Num = max(Flags#flags.num div 1000, 1),
    each(Number, Flags, total(Num), {put, 100_000}, keys(Keys, Flags#flags{num = Num}), false);
plan({gets, Keys}, Number, Flags) ->
    each(Number, Flags, total(reads_of(Flags)), get, keys(Keys, Flags), false);
plan({mixed, Writes}, Number, Flags) ->
    each(Number, Flags, total(reads_of(Flags)), {mixed, Writes}, keys(random, Flags), false);
plan({timed, Writes, Keys}, Number, Flags) ->
    each(Number, Flags, seconds, {mixed_or_all, Writes}, keys(Keys, Flags), false);
plan(beside_writer, Number, Flags) ->
    {Readers, Reads} = each(Number, Flags, total(reads_of(Flags)), get, keys(random, Flags), false),
    {Readers + 1, fun
        (Thread, _) when Thread < Readers -> Reads(Thread, Readers);
        (Thread, _) ->
            #{random => stream(Flags#flags.seed, Number, Thread), from => 0, until => endless,
              result => beside, operation => put, keys => keys(random, Flags), synced => false}
    end}.

each(Number, Flags, Until, Operation, Keys, Synced) ->
    {Flags#flags.threads, fun(Thread, Threads) ->
        {From, To} = case Until of
            seconds -> {0, seconds};
            {total, Total} -> {Total * Thread div Threads, Total * (Thread + 1) div Threads}
        end,
        #{random => stream(Flags#flags.seed, Number, Thread), from => From, until => To,
          result => counts, operation => Operation, keys => Keys, synced => Synced}
    end}.

total(Count) -> {total, Count}.

reads_of(#flags{reads = 0, num = Num}) -> Num;
reads_of(#flags{reads = Reads}) -> Reads.

%% The number of a key, what comes behind it, and the random state afterwards.
keys(seq, _) -> fun(At, State) -> {At, <<>>, State} end;
keys(random, #flags{num = Num}) -> below(Num, <<>>);
keys(missing, #flags{num = Num}) -> below(Num, <<".">>);
keys(put, #flags{seed = Seed, num = Num}) ->
    %% What fillrandom, whose number is 2, drew.
    Filled = stream(Seed, 2, 0),
    fun(_, State0) ->
        {Random, State} = next(State0),
        {mix((Filled + (Random rem Num + 1) * ?STEP) band ?MASK) rem Num, <<>>, State}
    end;
keys(hot, #flags{num = Num}) -> below(max(Num div 100, 1), <<>>);
keys({pareto, Fraction}, #flags{num = Num}) ->
    fun(_, State0) ->
        {Random, State} = next(State0),
        Unit = (Random bsr 11) / 9007199254740992.0,
        Drawn = (math:pow(1.0 - Unit, -1 / 1.5) - 1) * Num * Fraction * 0.5,
        {trunc(Drawn) rem Num, <<>>, State}
    end.

below(Num, Behind) ->
    fun(_, State0) -> {Random, State} = next(State0), {Random rem Num, Behind, State} end.

%% Does the operations of one thread, and returns how many there were, how many found something, and
%% whether the time ended them.
work(Thread, Db, Flags, Pool, Shared, Begin) ->
    #{result := Result, from := From, random := Random} = Thread,
    Limit = case {Thread, Flags} of
        {#{until := seconds}, _} -> Begin + round(Flags#flags.duration * 1.0e9);
        {#{until := endless}, _} -> none;
        {_, #flags{time_limit = Seconds}} when Seconds > 0 -> Begin + round(Seconds * 1.0e9);
        _ -> none
    end,
    Record = case Result of counts -> Shared; beside -> none end,
    Loop = Thread#{db => Db, flags => Flags, limit => Limit, record => Record, begun => Begin},
    {loop(Loop, From, Random, Pool, Begin, 0, Begin), Result}.

loop(#{until := Until, from := From}, Until, _, _, _, Found, _) when is_integer(Until) ->
    {Until - From, Found, false};
loop(Thread, At, Random0, Pool0, Last, Found0, Checked0) ->
    #{db := Db, flags := Flags, limit := Limit, record := Record} = Thread,
    #{from := From, until := Until} = Thread,
    pace(Thread, At, Flags),
    {Hit, Random, Pool} = operate(Thread, At, Random0, Pool0),
    Now = erlang:monotonic_time(nanosecond),
    note(Record, Now - Last),
    Found = Found0 + Hit,
    Checked = case Db of {own, Own} -> look_for_merge(Flags, Own, Checked0); _ -> Checked0 end,
    Done = At + 1 - From,
    case is_stopped(Until) of
        true -> {Done, Found, false};
        false when Limit =/= none, Now >= Limit, At + 1 =/= Until ->
            {Done, Found, Until =/= seconds};
        false -> loop(Thread, At + 1, Random, Pool, Now, Found, Checked)
    end.

is_stopped(endless) -> receive stop -> true after 0 -> false end;
is_stopped(_) -> false.

%% A writer with a pace puts when its next put is due.
pace(#{until := endless, begun := Begin}, At, #flags{write_rate = Rate}) when Rate > 0 ->
    case Begin + round(At * 1.0e9 / Rate) - erlang:monotonic_time(nanosecond) of
        Early when Early >= 1_000_000 -> receive after Early div 1_000_000 -> ok end;
        _ -> ok
    end;
pace(_, _, _) -> ok.

%% One operation: whether it found something (1 or 0), and what comes after.
operate(#{operation := {mixed, Writes}} = Thread, At, Random0, Pool) ->
    {Choice, Random} = next(Random0),
    case Choice rem 100 < 100 - Writes of
        true -> operate(Thread#{operation := get}, At, Random, Pool);
        false -> operate(Thread#{operation := put}, At, Random, Pool)
    end;
operate(#{operation := {mixed_or_all, 0}} = Thread, At, Random, Pool) ->
    operate(Thread#{operation := get}, At, Random, Pool);
operate(#{operation := {mixed_or_all, 100}} = Thread, At, Random, Pool) ->
    operate(Thread#{operation := put}, At, Random, Pool);
operate(#{operation := {mixed_or_all, Writes}} = Thread, At, Random, Pool) ->
    operate(Thread#{operation := {mixed, Writes}}, At, Random, Pool);
operate(Thread, At, Random0, Pool0) ->
    #{operation := Operation, keys := Keys, flags := Flags, db := Db, synced := Synced} = Thread,
    {Number, Behind, Random} = Keys(At, Random0),
    Key = case Behind of
        <<>> -> key(Number, Flags#flags.key_size);
        _ -> <<(key(Number, Flags#flags.key_size))/binary, Behind/binary>>
    end,
    case Operation of
        get -> {get_it(Db, Key), Random, Pool0};
        delete -> ok = write(Db, Key, delete, false), {0, Random, Pool0};
        {put, Size} ->
            {Value, Pool} = value(Pool0, Size),
            ok = write(Db, Key, Value, Synced),
            {0, Random, Pool};
        put ->
            {Size, Random2} = size(Flags, Random),
            {Value, Pool} = value(Pool0, Size),
            ok = write(Db, Key, Value, Synced),
            {0, Random2, Pool}
    end.

size(#flags{value_size = Least, value_size_max = Most}, Random0) when Most > Least ->
    {Drawn, Random} = next(Random0),
    {Least + Drawn rem (Most - Least + 1), Random};
size(#flags{value_size = Size}, Random) -> {Size, Random}.

get_it({_, Db}, Key) ->
    case bitcask:get(Db, Key) of
        {ok, _} -> 1;
        not_found -> 0
    end.

%% Latencies, of all threads together. Behind the buckets are the sum, and the greatest of all and
%% of an interval.

shared() -> {counters:new(?BUCKETS + 1, [write_concurrency]), atomics:new(2, [{signed, false}])}.

note(none, _) -> ok;
note({Counts, Greatest}, Nanos) ->
    counters:add(Counts, bucket(Nanos), 1),
    counters:add(Counts, ?BUCKETS + 1, Nanos),
    raise(Greatest, 1, Nanos),
    raise(Greatest, 2, Nanos).

raise(Greatest, At, Nanos) ->
    case atomics:get(Greatest, At) of
        Before when Before >= Nanos -> ok;
        Before ->
            case atomics:compare_exchange(Greatest, At, Before, Nanos) of
                ok -> ok;
                _ -> raise(Greatest, At, Nanos)
            end
    end.

bucket(Nanos) when Nanos < ?STEPS -> max(Nanos, 0) + 1;
bucket(Nanos) ->
    Power = power(Nanos, 5),
    (Power - 4) * ?STEPS + ((Nanos bsr (Power - 5)) band (?STEPS - 1)) + 1.

power(Nanos, Power) when Nanos bsr (Power + 1) =:= 0 -> Power;
power(Nanos, Power) -> power(Nanos, Power + 1).

%% The middle of a bucket, in microseconds.
middle(Bucket) when Bucket =< ?STEPS -> (Bucket - 1) / 1000;
middle(Bucket) ->
    Power = (Bucket - 1) div ?STEPS + 4,
    Step = 1 bsl (Power - 5),
    ((?STEPS + (Bucket - 1) rem ?STEPS) * Step + Step / 2) / 1000.

counts({Counts, _}) -> [counters:get(Counts, At) || At <- lists:seq(1, ?BUCKETS)].

percentile(Counts, Total, Part, Most) -> min(percentile(Counts, 1, trunc(Part * Total)), Most).

percentile([], Bucket, _) -> middle(Bucket - 1);
percentile([Count | _], Bucket, Before) when Count > Before -> middle(Bucket);
percentile([Count | Counts], Bucket, Before) -> percentile(Counts, Bucket + 1, Before - Count).

%% Prints a line for each interval.
reporter(_, #flags{interval = Interval}, _, _) when Interval =< 0 -> none;
reporter(Name, #flags{interval = Interval}, Shared, Begin) ->
    Milliseconds = max(round(Interval * 1000), 1),
    spawn_link(fun() -> series(Name, Milliseconds, Shared, Begin, {[], 0}) end).

stop(none) -> ok;
stop(Reporter) -> unlink(Reporter), exit(Reporter, kill), ok.

series(Name, Milliseconds, {Counts, Greatest} = Shared, Begin, {Before, SumBefore}) ->
    receive after Milliseconds -> ok end,
    Now = counts(Shared),
    Sum = counters:get(Counts, ?BUCKETS + 1),
    New = case Before of [] -> Now; _ -> lists:zipwith(fun(A, B) -> A - B end, Now, Before) end,
    Ops = lists:sum(New),
    Most = atomics:exchange(Greatest, 2, 0) / 1000,
    Second = (erlang:monotonic_time(nanosecond) - Begin) / 1.0e9,
    Head = [{series, Name}, {second, Second}, {ops, Ops}],
    Rest = case Ops of
        0 -> [];
        _ -> [{mean_us, (Sum - SumBefore) / Ops / 1000}] ++
            [{Field, percentile(New, Ops, Part, Most)}
             || {Field, Part} <- [{p50_us, 0.5}, {p95_us, 0.95}, {p99_us, 0.99},
                                  {p999_us, 0.999}]] ++
            [{max_us, Most}]
    end,
    say(Head ++ Rest),
    series(Name, Milliseconds, Shared, Begin, {Now, Sum}).

%% The self-test.

selftest(Flags, Pool, Db0) ->
    pass(2, Flags, Pool, Db0, stream(Flags#flags.seed, 31, 0), 16#CBF29CE484222325).

pass(0, _, _, Db, _, Digest) ->
    {Db, string:lowercase(io_lib:format("~16.16.0B", [Digest]))};
pass(Left, Flags, Pool, Db0, Random0, Digest0) ->
    close(Db0),
    Db = open(Flags, closed),
    {Random, Digest1} = step(10_000, Flags, Pool, Db, Random0, Digest0),
    Keys = lists:sort(bitcask:list_keys(Db)),
    Digest2 = add(entries(Keys, Db, Digest1), <<2>>),
    Digest = add(entries(lists:reverse(Keys), Db, Digest2), <<2>>),
    pass(Left - 1, Flags, Pool, Db, Random, Digest).

step(0, _, _, _, Random, Digest) -> {Random, Digest};
step(Left, Flags, Pool, Db, Random0, Digest0) ->
    {What, Random1} = next(Random0),
    {Number, Random2} = next(Random1),
    Key = key(Number rem 5000, Flags#flags.key_size),
    {Random, Digest} = case What rem 10 of
        Put when Put =< 4 -> {put_drawn(Key, Pool, Db, Random2), Digest0};
        Delete when Delete =< 6 -> ok = bitcask:delete(Db, Key), {Random2, Digest0};
        7 ->
            Change = fun(_, At) -> change(Flags, Pool, Db, At) end,
            {lists:foldl(Change, Random2, lists:seq(1, 10)), Digest0};
        8 ->
            case bitcask:get(Db, Key) of
                not_found -> {Random2, add(Digest0, <<0>>)};
                {ok, Value} -> {Random2, sized(add(Digest0, <<1>>), Value)}
            end;
        9 ->
            Later = lists:sort([Other || Other <- bitcask:list_keys(Db), Other >= Key]),
            Found = lists:sublist(Later, 5),
            Met = entries(Found, Db, Digest0),
            {Random2, case length(Found) of 5 -> Met; _ -> add(Met, <<2>>) end}
    end,
    step(Left - 1, Flags, Pool, Db, Random, Digest).

put_drawn(Key, Pool, Db, Random0) ->
    {Size, Random1} = next(Random0),
    {At, Random} = next(Random1),
    ok = bitcask:put(Db, Key, binary:part(Pool#pool.text, At rem 1_000_000, Size rem 300)),
    Random.

change(Flags, Pool, Db, Random0) ->
    {Choice, Random1} = next(Random0),
    {Number, Random} = next(Random1),
    Key = key(Number rem 5000, Flags#flags.key_size),
    case Choice rem 3 of
        0 -> ok = bitcask:delete(Db, Key), Random;
        _ -> put_drawn(Key, Pool, Db, Random)
    end.

entries(Keys, Db, Digest) ->
    Add = fun(Key, At) -> {ok, Value} = bitcask:get(Db, Key), sized(sized(At, Key), Value) end,
    lists:foldl(Add, Digest, Keys).

sized(Digest, Bytes) -> add(add(Digest, <<(byte_size(Bytes)):32/little>>), Bytes).

add(Digest, <<>>) -> Digest;
add(Digest, <<Byte, Rest/binary>>) -> add(((Digest bxor Byte) * 16#100000001B3) band ?MASK, Rest).

%% Reports.

resources() ->
    {ok, Stat} = file:read_file("/proc/self/stat"),
    [_, Behind] = binary:split(Stat, <<") ">>),
    Fields = binary:split(Behind, <<" ">>, [global]),
    Ticks = binary_to_integer(lists:nth(12, Fields)) + binary_to_integer(lists:nth(13, Fields)),
    {ok, Io} = file:read_file("/proc/self/io"),
    #{cpu => Ticks / 100, read => field(Io, <<"read_bytes">>), wchar => field(Io, <<"wchar">>),
      written => field(Io, <<"write_bytes">>)}.

field(Text, Name) ->
    Line = <<"(?m)^", Name/binary, ":\\s*(\\d+)">>,
    {match, [Digits]} = re:run(Text, Line, [{capture, all_but_first, binary}]),
    binary_to_integer(Digits).

%% The blocks of the files; Erlang has no way to ask for them.
disk_bytes(Dir) ->
    Quoted = "'" ++ lists:flatten(string:replace(Dir, "'", "'\\''", all)) ++ "'",
    {Bytes, _} = string:to_integer(os:cmd("du -s --block-size=1 -- " ++ Quoted)),
    Bytes.

report(Name, Flags, Seconds, Before, #{ops := Ops} = Result) ->
    After = resources(),
    {ok, Status} = file:read_file("/proc/self/status"),
    Threads = case Result of #{latencies := _} -> Flags#flags.threads; _ -> 1 end,
    Grown = fun(What) -> maps:get(What, After) - maps:get(What, Before) end,
    say([
        {benchmark, Name}, {engine, "bitcask"}, {ops, Ops}, {seconds, Seconds},
        {micros_per_op, Seconds * 1.0e6 * Threads / max(Ops, 1)}, {ops_per_sec, Ops / Seconds}
    ] ++ latencies(Result) ++ [
        {cpu_seconds, Grown(cpu)}, {bytes_written, max(Grown(wchar), Grown(written))},
        {bytes_read, Grown(read)}, {disk_bytes, disk_bytes(Flags#flags.db)},
        {peak_memory_bytes, field(Status, <<"VmHWM">>) * 1024}
    ] ++ [{found, Found} || #{found := Found} <- [Result], Found =/= none]
      ++ [{truncated, true} || #{truncated := true} <- [Result]]
      ++ [{writer_ops_per_sec, Written / Seconds} || #{beside := [Written]} <- [Result]]
      ++ [{digest, Digest} || #{digest := Digest} <- [Result]]).

latencies(#{latencies := {Counts, Greatest} = Shared}) ->
    All = counts(Shared),
    Most = atomics:get(Greatest, 1) / 1000,
    case lists:sum(All) of
        0 -> [];
        Total ->
            [{mean_us, counters:get(Counts, ?BUCKETS + 1) / Total / 1000}] ++
                [{Field, percentile(All, Total, Part, Most)}
                 || {Field, Part} <- [{p50_us, 0.5}, {p75_us, 0.75}, {p90_us, 0.9}, {p95_us, 0.95},
                                      {p99_us, 0.99}, {p999_us, 0.999}, {p9999_us, 0.9999}]] ++
                [{max_us, Most}]
    end;
latencies(_) -> [].

say(Fields) -> io:put_chars([object(Fields), $\n]).

%% JSON: an object is a list of pairs, a string a list of characters.
object(Fields) ->
    Pairs = [[$", to_name(Name), "\":", json(Value)] || {Name, Value} <- Fields],
    [${, lists:join($,, Pairs), $}].

to_name(Name) when is_atom(Name) -> atom_to_list(Name);
to_name(Name) -> Name.

json(true) -> "true";
json({list, Items}) -> [$[, lists:join($,, [json(Item) || Item <- Items]), $]];
json([{_, _} | _] = Fields) -> object(Fields);
json(Number) when is_integer(Number) -> integer_to_list(Number);
json(Number) when is_float(Number) -> float_to_list(Number, [{decimals, 6}, compact]);
json(Text) -> [$", string:replace(string:replace(Text, "\\", "\\\\", all), "\"", "\\\"", all), $"].
