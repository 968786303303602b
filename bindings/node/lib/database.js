'use strict'

const { AbstractLevel, AbstractSnapshot } = require('abstract-level')
const fsp = require('fs/promises')
const path = require('path')
const binding = require('./binding')
const { ChainedBatch } = require('./chained-batch')
const { codeError } = require('./errors')
const { FrameReader, copied } = require('./frames')
const { Iterator } = require('./iterator')
const { checkSignal, location: checkedLocation, openOptions } = require('./options')
const range = require('./range')
const { ReadQueue } = require('./read-queue')
const scratch = require('./scratch')
const { WriteQueue } = require('./write-queue')

// What a lookup returns for a key without a value, and if it was queued; below that is a ticket.
const NOT_FOUND = -1
const QUEUED = -2
// As many lookups are served from memory before one is queued, so that a program which awaits
// nothing else lets the event loop turn.
const MAX_DIRECT = 64
// Larger writes are made by a thread: their bytes take time to copy.
const MAX_DIRECT_BYTES = 16 << 10

const readString = (reader) => reader.result(true)
const readBytes = (reader) => reader.result(false)
const readPresence = (reader) => reader.result(false) !== undefined
const toString = (buffer, size) => buffer.utf8Slice(0, size)
const toBytes = (buffer, size) => copied(buffer, 0, size)
const toPresence = () => true

/**
 * An AbstractLevel database that keeps its data in LevelDB's files.
 */
class TerraceLevel extends AbstractLevel {
  #location
  #native = new binding.Database()
  #settled = (count) => {
    this.#pending -= count
    if (this.#pending === 0) this.#drained?.()
  }
  #done = () => this.#settled(1)
  #writes = new WriteQueue(this.#native, this.#settled)
  #reads = new ReadQueue(this.#native, this.#settled)
  // Lookups in a row that were served from memory.
  #direct = 0
  // Writes in a row that were made without a thread.
  #directWrites = 0
  // Promises that have not been settled.
  #pending = 0
  #drained = null

  constructor (location, options) {
    checkedLocation(location)

    super({
      encodings: { buffer: true, utf8: true, view: true },
      has: true,
      createIfMissing: true,
      errorIfExists: true,
      explicitSnapshots: true,
      getSync: true,
      additionalMethods: {
        approximateSize: true, compactRange: true, checkpoint: true
      },
      signals: { iterators: true }
    }, options)

    this.#location = location
  }

  get location () {
    return this.#location
  }

  async _open (options) {
    const native = openOptions(options)
    if (options.createIfMissing) await fsp.mkdir(this.#location, { recursive: true })
    await this.#native.open(this.#location, native)
    this.#native.attach()
  }

  async _close () {
    // Reads and writes that were called before close() are done first.
    while (this.#pending > 0) await new Promise((resolve) => { this.#drained = resolve })
    this.#drained = null

    // An error is one that writes have been rejected with before; the database is closed either
    // way, and what was acknowledged is in its files.
    await this.#native.close().catch(() => {})
  }

  /**
   * Keeps the database open until the promise of a job is settled.
   */
  #track (promise) {
    this.#pending++
    promise.then(this.#done, this.#done)
    return promise
  }

  #write (operations, options) {
    const sync = options.sync === true

    // Not before what was asked for earlier, and not for ever: see MAX_DIRECT.
    if (!sync && this.#directWrites < MAX_DIRECT && operations.length <= MAX_DIRECT_BYTES &&
        this.#writes.isIdle && this.#native.tryWrite(operations.buffer, operations.length)) {
      this.#directWrites++
      return undefined
    }

    this.#directWrites = 0
    this.#native.queueWrite(operations.buffer, operations.length, sync)
    this.#pending++
    return this.#writes.push()
  }

  _put (key, value, options) {
    const writer = scratch.writer()
    writer.put(key, value)
    return this.#write(writer, options)
  }

  _del (key, options) {
    const writer = scratch.writer()
    writer.del(key)
    return this.#write(writer, options)
  }

  _batch (operations, options) {
    const writer = scratch.writer()

    for (const operation of operations) {
      if (operation.type === 'put') {
        writer.put(operation.key, operation.value)
      } else {
        writer.del(operation.key)
      }
    }

    return this.#write(writer, options)
  }

  _chainedBatch () {
    return new ChainedBatch(this, (operations, options) => this.#write(operations, options))
  }

  _clear (options) {
    const writer = scratch.writer()
    const flags = range.write(writer, options)
    const limit = Number.isInteger(options.limit) ? options.limit : -1
    this.#native.queueClear(
      writer.buffer, writer.length, flags, limit, nativeSnapshot(options)
    )
    this.#pending++
    return this.#writes.push()
  }

  /**
   * Returns what was found of a key, or the promise of it: `absent`, or what `show` makes of a
   * value in a buffer, or `read` of a frame.
   */
  #lookup (key, options, absent, show, read) {
    const writer = scratch.writer()
    const length = writer.raw(key)
    const size = this.#native.lookup(
      writer.buffer, length, options.fillCache !== false, nativeSnapshot(options),
      this.#direct < MAX_DIRECT
    )

    if (size === QUEUED) {
      this.#direct = 0
      this.#pending++
      return this.#reads.push(read)
    }

    this.#direct++
    return size === NOT_FOUND ? absent : this.#shown(size, writer.buffer, show)
  }

  // A value that did not fit into the buffer has a ticket.
  #shown (size, buffer, show) {
    if (size >= 0) return show(buffer, size)
    const ticket = QUEUED - 1 - size
    const whole = this.#native.take(ticket, Buffer.alloc(0))
    return show(scratch.takeOwned(this.#native, ticket, whole), whole)
  }

  _get (key, options) {
    return options.valueEncoding === 'utf8'
      ? this.#lookup(key, options, undefined, toString, readString)
      : this.#lookup(key, options, undefined, toBytes, readBytes)
  }

  _has (key, options) {
    return this.#lookup(key, options, false, toPresence, readPresence)
  }

  _getSync (key, options) {
    const writer = scratch.writer()
    const length = writer.raw(key)
    const size = this.#native.getSync(
      writer.buffer, length, options.fillCache !== false, nativeSnapshot(options)
    )

    if (size === NOT_FOUND) return undefined
    return this.#shown(size, writer.buffer, options.valueEncoding === 'utf8' ? toString : toBytes)
  }

  async _getMany (keys, options) {
    const writer = keyWriter(keys)
    const ticket = await this.#track(this.#native.getMany(
      writer.buffer, writer.length, options.fillCache !== false, nativeSnapshot(options)
    ))
    const reader = new FrameReader(scratch.take(this.#native, ticket), 0)
    const read = options.valueEncoding === 'utf8' ? readString : readBytes
    const values = new Array(keys.length)
    for (let i = 0; i < values.length; i++) values[i] = read(reader)
    return values
  }

  async _hasMany (keys, options) {
    const writer = keyWriter(keys)
    const ticket = await this.#track(this.#native.hasMany(
      writer.buffer, writer.length, options.fillCache !== false, nativeSnapshot(options)
    ))
    const found = scratch.take(this.#native, ticket)
    const values = new Array(keys.length)
    for (let i = 0; i < values.length; i++) values[i] = found[i] === 1
    return values
  }

  // Signals are checked first: abstract-level has attached the iterator to the database, or put the
  // signal into its queue, by the time that it uses one, and could no longer be closed or opened.
  iterator (options) {
    checkSignal(options)
    return super.iterator(options)
  }

  keys (options) {
    checkSignal(options)
    return super.keys(options)
  }

  values (options) {
    checkSignal(options)
    return super.values(options)
  }

  _iterator (options) {
    const track = (promise) => this.#track(promise)
    return new Iterator(this, this.#native, track, options, () => nativeSnapshot(options))
  }

  _snapshot (options) {
    return new Snapshot(this.#native, options)
  }

  async approximateSize (start, end, options) {
    return this.#overRange('approximateSize', start, end, options, arguments.length)
  }

  async compactRange (start, end, options) {
    return this.#overRange('compactRange', start, end, options, arguments.length)
  }

  async #overRange (name, start, end, options, count) {
    if (count < 2) {
      throw new TypeError("The arguments 'start' and 'end' are required")
    }

    if (this.status === 'opening') {
      return this.deferAsync(() => this.#overRange(name, start, end, options, count))
    }

    this.#assertOpen(name)
    const keyEncoding = this.keyEncoding(options?.keyEncoding)
    const writer = keyWriter([keyEncoding.encode(start), keyEncoding.encode(end)])
    return this.#track(this.#native[name](writer.buffer, writer.length))
  }

  async checkpoint (location) {
    checkedLocation(location)
    // Of the directory that is the current one now.
    location = path.resolve(location)
    if (this.status === 'opening') return this.deferAsync(() => this.checkpoint(location))
    this.#assertOpen('checkpoint')
    return this.#track(this.#native.checkpoint(location))
  }

  #assertOpen (name) {
    if (this.status === 'open') return
    const message = `Database is not open: cannot call ${name}()`
    throw codeError('LEVEL_DATABASE_NOT_OPEN', message)
  }

  getProperty (property) {
    if (typeof property !== 'string') {
      throw new TypeError("The first argument 'property' must be a string")
    }

    // Synchronous, so it cannot wait until the database is open.
    if (this.status !== 'open') {
      throw codeError('LEVEL_DATABASE_NOT_OPEN', 'Database is not open')
    }

    return this.#native.property(property) ?? ''
  }

  stats () {
    this.#assertOpen('stats')
    return this.#native.stats()
  }

  static async destroy (location) {
    return binding.destroy(checkedLocation(location))
  }

  static async repair (location) {
    return binding.repair(checkedLocation(location))
  }
}

/**
 * The database as it was at one moment.
 */
class Snapshot extends AbstractSnapshot {
  #snapshot

  constructor (native, options) {
    super(options)
    this.#snapshot = native.snapshot()
  }

  async _close () {
    this.#snapshot.close()
  }

  static native (snapshot) {
    if (!(#snapshot in snapshot)) throw new TypeError('The snapshot is not one of this database')
    return snapshot.#snapshot
  }
}

function nativeSnapshot (options) {
  return options.snapshot == null ? undefined : Snapshot.native(options.snapshot)
}

function keyWriter (keys) {
  const writer = scratch.writer()
  for (const key of keys) writer.bytes(key)
  return writer
}

exports.TerraceLevel = TerraceLevel
