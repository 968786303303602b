import {
  AbstractBatchOperation,
  AbstractBatchOptions,
  AbstractChainedBatch,
  AbstractChainedBatchWriteOptions,
  AbstractDatabaseOptions,
  AbstractDelOptions,
  AbstractGetManyOptions,
  AbstractGetOptions,
  AbstractHasManyOptions,
  AbstractHasOptions,
  AbstractIterator,
  AbstractIteratorOptions,
  AbstractKeyIterator,
  AbstractKeyIteratorOptions,
  AbstractLevel,
  AbstractOpenOptions,
  AbstractPutOptions,
  AbstractSnapshot,
  AbstractValueIterator,
  AbstractValueIteratorOptions,
  Transcoder
} from 'abstract-level'

/**
 * An {@link AbstractLevel} database on Terrace, which reads and writes LevelDB's files.
 *
 * All promises of one database may be under way at once, in any number. Writes take effect in the
 * order of their calls. A write whose promise is fulfilled survives the death of the process; with
 * the option `sync` it survives the loss of power, and so does every write before it.
 *
 * Errors have a `code`: `LEVEL_CORRUPTION`, whose message names file and offset;
 * `LEVEL_IO_ERROR`, whose message names the path; `LEVEL_LOCKED`; and those of abstract-level.
 *
 * @template KDefault The type of keys, unless an operation overrides it.
 * @template VDefault The type of values, unless an operation overrides it.
 *
 * @example
 * const db = new TerraceLevel('./fruit', { valueEncoding: 'json' })
 * await db.put('apple', { colour: 'red' })
 * for await (const [key, value] of db.iterator({ gte: 'a' })) console.log(key, value)
 * await db.close()
 */
export class TerraceLevel<KDefault = string, VDefault = string>
  extends AbstractLevel<string | Buffer | Uint8Array, KDefault, VDefault> {
  /**
   * @param location The directory of the database, relative or absolute.
   * @param options Options of this database, and those that {@link open} is called with.
   */
  constructor (location: string, options?: DatabaseOptions<KDefault, VDefault> | undefined)

  /** The location that was passed to the constructor. */
  get location (): string

  open (): Promise<void>
  open (options: OpenOptions): Promise<void>

  get (key: KDefault): Promise<VDefault | undefined>
  get<K = KDefault, V = VDefault> (
    key: K, options: GetOptions<K, V>
  ): Promise<V | undefined>

  /** Reads on the event loop, which waits for the disk if it has to. */
  getSync (key: KDefault): VDefault | undefined
  getSync<K = KDefault, V = VDefault> (key: K, options: GetOptions<K, V>): V | undefined

  getMany (keys: KDefault[]): Promise<Array<VDefault | undefined>>
  getMany<K = KDefault, V = VDefault> (
    keys: K[], options: GetManyOptions<K, V>
  ): Promise<Array<V | undefined>>

  has (key: KDefault): Promise<boolean>
  has<K = KDefault> (key: K, options: HasOptions<K>): Promise<boolean>

  hasMany (keys: KDefault[]): Promise<boolean[]>
  hasMany<K = KDefault> (keys: K[], options: HasManyOptions<K>): Promise<boolean[]>

  put (key: KDefault, value: VDefault): Promise<void>
  put<K = KDefault, V = VDefault> (
    key: K, value: V, options: PutOptions<K, V>
  ): Promise<void>

  del (key: KDefault): Promise<void>
  del<K = KDefault> (key: K, options: DelOptions<K>): Promise<void>

  batch (operations: Array<BatchOperation<typeof this, KDefault, VDefault>>): Promise<void>
  batch<K = KDefault, V = VDefault> (
    operations: Array<BatchOperation<typeof this, K, V>>, options: BatchOptions<K, V>
  ): Promise<void>
  batch (): ChainedBatch<typeof this, KDefault, VDefault>

  iterator (): Iterator<typeof this, KDefault, VDefault>
  iterator<K = KDefault, V = VDefault> (
    options: IteratorOptions<K, V>
  ): Iterator<typeof this, K, V>

  keys (): KeyIterator<typeof this, KDefault>
  keys<K = KDefault> (options: KeyIteratorOptions<K>): KeyIterator<typeof this, K>

  values (): ValueIterator<typeof this, KDefault, VDefault>
  values<K = KDefault, V = VDefault> (
    options: ValueIteratorOptions<K, V>
  ): ValueIterator<typeof this, K, V>

  snapshot (options?: any | undefined): Snapshot

  /**
   * About how many bytes the keys from `start` to before `end` take on disk. What is only in memory
   * does not count.
   */
  approximateSize (start: KDefault, end: KDefault): Promise<number>
  approximateSize<K = KDefault> (
    start: K, end: K, options: StartEndOptions<K>
  ): Promise<number>

  /** Compacts the tables that hold keys from `start` to `end`, and waits for it. */
  compactRange (start: KDefault, end: KDefault): Promise<void>
  compactRange<K = KDefault> (
    start: K, end: K, options: StartEndOptions<K>
  ): Promise<void>

  /**
   * Makes a copy of the database in another directory while it is in use. The copy is a database of
   * its own. It holds every write whose promise was fulfilled before the call, and it is durable
   * when the promise of this is fulfilled.
   *
   * Tables and value files are hard links where the file system allows it, which takes no space, so
   * a copy on the same disk is no backup yet: copy it elsewhere.
   *
   * Rejected with `LEVEL_INVALID_ARGUMENT` if there is anything in the directory; with
   * `LEVEL_LOCKED` if another process is making a database there; with `LEVEL_IO_ERROR`, after
   * which nothing of the copy is left.
   *
   * @param location The directory of the copy, absent or empty. Directories above it are
   *   created.
   */
  checkpoint (location: string): Promise<CheckpointReport>

  /**
   * A property of LevelDB's: `leveldb.num-files-at-level<N>`, `leveldb.stats`, `leveldb.sstables`
   * or `leveldb.approximate-memory-usage`. The empty string for any other name.
   */
  getProperty (property: string): string

  /**
   * Numbers about the database and its work since it was opened. Threads that share a database have
   * the same numbers.
   */
  stats (): Stats

  /**
   * Removes the database in the directory `location`, and the directory if nothing else is in it.
   * The database must be closed.
   */
  static destroy (location: string): Promise<void>

  /**
   * Saves what can be saved of a damaged database, which must be closed. Leaves one that is not
   * damaged as it is.
   */
  static repair (location: string): Promise<void>
}

/** The same class under the name that programs for classic-level import. */
export class ClassicLevel<KDefault = string, VDefault = string>
  extends TerraceLevel<KDefault, VDefault> {}

/** The same class under the name that programs for level import. */
export class Level<KDefault = string, VDefault = string>
  extends TerraceLevel<KDefault, VDefault> {}

/** Options of the constructor. */
export interface DatabaseOptions<K, V>
  extends AbstractDatabaseOptions<K, V>, Omit<OpenOptions, 'passive'> {}

/** Options of {@link TerraceLevel.open}. Numbers that LevelDB clips are clipped alike. */
export interface OpenOptions extends AbstractOpenOptions {
  /**
   * Compress blocks with snappy.
   *
   * @defaultValue `true`
   */
  compression?: boolean | undefined

  /**
   * Bytes of the block cache.
   *
   * @defaultValue `8 * 1024 * 1024`
   */
  cacheSize?: number | undefined

  /**
   * Bytes of writes that are kept in memory, and in a log, before they are flushed.
   *
   * @defaultValue `4 * 1024 * 1024`
   */
  writeBufferSize?: number | undefined

  /**
   * Bytes of a block of a table before compression.
   *
   * @defaultValue `4096`
   */
  blockSize?: number | undefined

  /**
   * Files that may be open at once.
   *
   * @defaultValue `1000`
   */
  maxOpenFiles?: number | undefined

  /**
   * Keys of a block between two that are stored whole.
   *
   * @defaultValue `16`
   */
  blockRestartInterval?: number | undefined

  /**
   * Bytes of a table before the next one begins.
   *
   * @defaultValue `2 * 1024 * 1024`
   */
  maxFileSize?: number | undefined

  /**
   * Keep values of at least this many bytes in value files instead of tables; 0 keeps values in
   * tables. LevelDB, and classic-level with it, refuses a database with value files, until
   * `terrace convert --to plain` has brought the values back.
   *
   * @defaultValue `0`
   */
  valueLog?: number | undefined

  /**
   * Share one database among the threads of this process that open the directory with this option.
   * The options of the first one hold; the last one to close it closes it.
   *
   * @defaultValue `false`
   */
  multithreading?: boolean | undefined
}

/** Additional options of reads of keys. */
declare interface ReadOptions {
  /**
   * Keep blocks that are read in the cache.
   *
   * @defaultValue `true`
   */
  fillCache?: boolean | undefined
}

/** Options of {@link TerraceLevel.get}. */
export interface GetOptions<K, V> extends AbstractGetOptions<K, V>, ReadOptions {}

/** Options of {@link TerraceLevel.getMany}. */
export interface GetManyOptions<K, V> extends AbstractGetManyOptions<K, V>, ReadOptions {}

/** Options of {@link TerraceLevel.has}. */
export interface HasOptions<K> extends AbstractHasOptions<K>, ReadOptions {}

/** Options of {@link TerraceLevel.hasMany}. */
export interface HasManyOptions<K> extends AbstractHasManyOptions<K>, ReadOptions {}

/** Additional options of iterators. */
export interface AdditionalIteratorOptions {
  /**
   * Keep blocks that are read in the cache.
   *
   * @defaultValue `false`
   */
  fillCache?: boolean | undefined

  /**
   * A chunk of entries ends when it has more bytes than this.
   *
   * @defaultValue `16 * 1024`
   */
  highWaterMarkBytes?: number | undefined
}

/** Additional options of writes. */
declare interface WriteOptions {
  /**
   * Fulfil the promise when the write, and every write before it, would survive the loss of power.
   *
   * @defaultValue `false`
   */
  sync?: boolean | undefined
}

/** Options of {@link TerraceLevel.put}. */
export interface PutOptions<K, V> extends AbstractPutOptions<K, V>, WriteOptions {}

/** Options of {@link TerraceLevel.del}. */
export interface DelOptions<K> extends AbstractDelOptions<K>, WriteOptions {}

/** Options of {@link TerraceLevel.batch}. */
export interface BatchOptions<K, V> extends AbstractBatchOptions<K, V>, WriteOptions {}

/** Options of {@link ChainedBatch.write}. */
export interface ChainedBatchWriteOptions
  extends AbstractChainedBatchWriteOptions, WriteOptions {}

/** Operations that are collected one by one and written together. */
export class ChainedBatch<TDatabase, KDefault, VDefault>
  extends AbstractChainedBatch<TDatabase, KDefault, VDefault> {
  write (): Promise<void>
  write (options: ChainedBatchWriteOptions): Promise<void>
}

/** Options of {@link TerraceLevel.approximateSize} and {@link TerraceLevel.compactRange}. */
export interface StartEndOptions<K> {
  /** The encoding of `start` and `end`. */
  keyEncoding?: string | Transcoder.PartialEncoder<K> | undefined
}

/** The copy that {@link TerraceLevel.checkpoint} has made. */
export interface CheckpointReport {
  /** Tables of the copy. */
  tables: number

  /** Value files of the copy. */
  valueFiles: number

  /** How many of all of them are hard links to files of the database; the others are copies. */
  linked: number

  /** Bytes of all tables. */
  tableBytes: number

  /** Bytes of all value files. */
  valueBytes: number

  /** The sequence number of the last write in the copy. */
  sequence: number
}

/** Tables of a level, and the work on it since the database was opened. */
export interface LevelStats {
  /** The level, 0 to 6. */
  level: number

  /** Tables of the level now. */
  files: number

  /** Bytes of these tables. */
  bytes: number

  /** Compactions that wrote to this level. */
  compactions: number

  /** Seconds that flushes and compactions into this level took. */
  seconds: number

  /** Bytes that compactions into this level read. */
  bytesRead: number

  /** Bytes that flushes and compactions wrote to this level. */
  bytesWritten: number
}

/** Numbers of {@link TerraceLevel.stats}. Work is counted since the database was opened. */
export interface Stats {
  /** Every level, from 0. */
  levels: LevelStats[]

  /** Bytes of all memtables. */
  memtableBytes: number

  /** Full memtables that have not been flushed. */
  immutableMemtables: number

  /** Bytes of keys and values that were written, with the few bytes that a batch adds. */
  userBytesWritten: number

  /** Bytes that flushes wrote to tables and value files. */
  flushBytesWritten: number

  /** Bytes that compactions read. */
  compactionBytesRead: number

  /** Bytes that compactions wrote to tables and value files. */
  compactionBytesWritten: number

  /**
   * Bytes written to logs, tables and value files for each byte that was written by the
   * program; 0 before the first write.
   */
  writeAmplification: number

  /** Bytes of tables and value files that are not obsolete, by an estimate. */
  liveBytes: number

  /**
   * Bytes of tables and value files for each that is not obsolete, by the same estimate; 1 where
   * there are none.
   */
  spaceAmplification: number

  /** Capacity of the block cache, in bytes. */
  cacheCapacity: number

  /** Bytes in the block cache. */
  cacheUsed: number

  /** Blocks that were found in the block cache. */
  cacheHits: number

  /** Blocks that were not, and had to be loaded. */
  cacheMisses: number

  /** Filters that lookups asked. */
  filterChecked: number

  /** Times that a filter spared a read. */
  filterUseful: number

  /** Tables that are open. */
  openTables: number

  /** Bytes in memory for open tables, indexes and filters, without blocks. */
  tableMemoryBytes: number

  /** Value files now. */
  valueFiles: number

  /** Bytes of value files. */
  valueFileBytes: number

  /** Bytes of the values in value files that tables point at. */
  valueBytesUsed: number

  /** Snapshots that are open, those of reads and iterators under way among them. */
  snapshots: number

  /** Times that a writer was slowed down or had to wait. */
  stallCount: number

  /** Microseconds that writers were slowed down or waited, in all. */
  stallMicros: number

  /** The sequence number of the last write. */
  sequence: number

  /** Bytes that have to be compacted before every level is within its limit. */
  pendingCompactionBytes: number

  /** Compactions that are running. */
  runningCompactions: number

  /** Whether the database has value files, or tables with LZ4 or zstd, which LevelDB refuses. */
  isExtended: boolean

  /** Seconds since the oldest open snapshot was taken, if there is one. */
  oldestSnapshotSeconds?: number | undefined

  /** The error that keeps flushes and compactions from going on, if there is one. */
  backgroundError?: string | undefined
}

export type BatchOperation<TDatabase, K, V> = AbstractBatchOperation<TDatabase, K, V>

export type Iterator<TDatabase, K, V> = AbstractIterator<TDatabase, K, V>
export type KeyIterator<TDatabase, K> = AbstractKeyIterator<TDatabase, K>
export type ValueIterator<TDatabase, K, V> = AbstractValueIterator<TDatabase, K, V>

export type IteratorOptions<K, V> = AbstractIteratorOptions<K, V> & AdditionalIteratorOptions
export type KeyIteratorOptions<K> = AbstractKeyIteratorOptions<K> & AdditionalIteratorOptions
export type ValueIteratorOptions<K, V> =
  AbstractValueIteratorOptions<K, V> & AdditionalIteratorOptions

export type Snapshot = AbstractSnapshot
