/**
 * Terrace: an embedded, ordered, persistent key-value store on LevelDB's files.
 *
 * <p>{@link io.terrace.TerraceFactory} implements {@code org.iq80.leveldb.DBFactory}: programs on
 * leveldbjni or iq80's leveldb change that one class. {@link io.terrace.TerraceDb} has what
 * {@code org.iq80.leveldb.DB} lacks: transactions, ranges, many keys at once, direct buffers,
 * checkpoints, checks and statistics.
 *
 * <p>Databases, snapshots and caches may be used by any number of threads at once. Iterators,
 * batches, transactions and loads belong to one thread at a time; using one in two threads gives
 * wrong results or an exception, never a crash. Everything may be closed twice, in any order and
 * from any thread. What was closed fails with {@link io.terrace.ClosedException}.
 *
 * <p>A write that has returned survives the death of the process; with {@code sync} it survives
 * the loss of power.
 */
package io.terrace;
