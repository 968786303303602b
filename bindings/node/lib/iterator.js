'use strict'

const { AbstractIterator } = require('abstract-level')
const { abortError } = require('./errors')
const { FrameReader, TextReader } = require('./frames')
const range = require('./range')
const scratch = require('./scratch')

// Entries that `next` reads ahead, after the first.
const READ_AHEAD = 1000
// Bytes that `all` reads at once, which is more than iterators hold: it returns everything anyway.
const ALL_BYTES = 192 << 10
const DEFAULT_HIGH_WATER_MARK_BYTES = 16 << 10
const MAX_SIZE = 0xffffffff

// Bits of the first byte of a chunk; `src/cursor.rs` sets them.
const END = 1
const ASCII = 2

const empty = []

/**
 * An iterator over entries. Reads chunks of them on the thread pool.
 */
class Iterator extends AbstractIterator {
  #native
  #track
  #cursor = null
  #flags = 0
  #highWaterMarkBytes
  #isStringKey
  #isStringValue
  #signal = null
  #abort = null
  #isAborted = false
  // Why the iterator could not be made, or moved. It fails when it is read.
  #failure = null
  #isFirst = true
  #isEnded = false
  #cache = empty
  #position = 0

  /**
   * `track` keeps the database open until a promise is settled; `snapshot` returns the native
   * snapshot to read, if there is one.
   */
  constructor (db, native, track, options, snapshot) {
    super(db, options)

    this.#native = native
    this.#track = track
    this.#highWaterMarkBytes = options.highWaterMarkBytes ?? DEFAULT_HIGH_WATER_MARK_BYTES
    this.#isStringKey = options.keyEncoding === 'utf8'
    this.#isStringValue = options.valueEncoding === 'utf8'

    // The iterator is attached to the database by now and must be one that can be closed.
    try {
      if (options.signal != null) this.#listen(options.signal)
      this.#open(options, snapshot())
    } catch (err) {
      this.#failure = err
    }
  }

  #listen (signal) {
    this.#abort = () => {
      this.#isAborted = true
      this.#cursor?.abort()
    }
    signal.addEventListener('abort', this.#abort, { once: true })
    this.#signal = signal
  }

  #open (options, snapshot) {
    const writer = scratch.writer()
    this.#flags = range.write(writer, options)
    if (options.keys !== false) this.#flags |= range.KEYS
    if (options.values !== false) this.#flags |= range.VALUES
    if (options.fillCache) this.#flags |= range.FILL_CACHE
    this.#cursor = this.#native.cursor(writer.buffer, writer.length, this.#flags, snapshot)
  }

  _seek (target, options) {
    if (this.#cursor === null) return
    this.#isFirst = true
    this.#isEnded = false
    this.#cache = empty
    this.#position = 0
    this.#failure = null

    // The queue of abstract-level that calls this once the database is open must not be broken off.
    try {
      const writer = scratch.writer()
      writer.bytes(target)
      this.#cursor.seek(writer.buffer, writer.length)
    } catch (err) {
      this.#failure = err
    }
  }

  // Not async: an entry that has been read ahead costs no promise.
  _next () {
    if (this.#position < this.#cache.length) return this.#cache[this.#position++]
    if (this.#isEnded) return undefined
    return this.#nextOfChunk()
  }

  async #nextOfChunk () {
    // The first entry is often the only one that is wanted.
    const size = this.#isFirst ? 1 : Math.min(READ_AHEAD, this.limit - this.count)
    this.#isFirst = false
    this.#cache = await this.#read(size, this.#highWaterMarkBytes)
    this.#position = 0
    return this.#cache[this.#position++]
  }

  async _nextv (size, options) {
    this.#isFirst = false

    if (this.#position < this.#cache.length) {
      const start = this.#position
      this.#position = Math.min(start + size, this.#cache.length)
      return this.#cache.slice(start, this.#position)
    }

    return this.#isEnded ? [] : this.#read(Math.min(size, MAX_SIZE), this.#highWaterMarkBytes)
  }

  async _all (options) {
    let all = this.#cache.slice(this.#position)
    this.#cache = empty
    this.#position = 0

    while (!this.#isEnded) {
      const left = this.limit - this.count - all.length
      if (left <= 0) break
      const bytes = Math.max(ALL_BYTES, this.#highWaterMarkBytes)
      const entries = await this.#read(Math.min(left, MAX_SIZE), bytes)

      if (all.length === 0) {
        all = entries
      } else {
        for (let i = 0; i < entries.length; i++) all.push(entries[i])
      }
    }

    return all
  }

  async #read (size, bytesLimit) {
    if (this.#failure !== null) throw this.#failure
    if (this.#isAborted) throw abortError()
    const ticket = await this.#track(this.#cursor.next(size, bytesLimit))
    const buffer = scratch.take(this.#native, ticket)
    if (this.#isAborted) throw abortError()
    return this.#decode(buffer)
  }

  #decode (buffer) {
    const isAscii = (buffer[0] & ASCII) !== 0
    const reader = isAscii ? new TextReader(buffer, 1) : new FrameReader(buffer, 1)
    const count = reader.int()
    const entries = new Array(count)
    const hasKeys = (this.#flags & range.KEYS) !== 0
    const hasValues = (this.#flags & range.VALUES) !== 0
    const isStringKey = this.#isStringKey
    const isStringValue = this.#isStringValue
    this.#isEnded = (buffer[0] & END) !== 0

    for (let i = 0; i < count; i++) {
      entries[i] = [
        !hasKeys ? undefined : isStringKey ? reader.string() : reader.copy(),
        !hasValues ? undefined : isStringValue ? reader.string() : reader.copy()
      ]
    }

    return entries
  }

  async _close () {
    this.#cache = empty
    this.#signal?.removeEventListener('abort', this.#abort)
    this.#signal = null
    this.#cursor?.close()
  }

  // Undocumented, as in classic-level: how many entries have been read ahead.
  get cached () {
    return this.#cache.length - this.#position
  }
}

exports.Iterator = Iterator
