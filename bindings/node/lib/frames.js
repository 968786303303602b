'use strict'

// How keys and values cross between JavaScript and Rust: length-prefixed, one behind the other, in
// one buffer. `src/frames.rs` is the other side.

const { frameError, sizeError } = require('./errors')

const DELETION = 0
const PUT = 1
const ABSENT = 0xffffffff
const FAILED = 0xfffffffe

// Lengths have 32 bits: those in frames, and that of all frames which a call hands over.
const MAX_LENGTH = 0xffffffff
// The engine's limit for a key and its value together, 8 MiB below 4 GiB.
const MAX_ENTRY_SIZE = 4286578679

// A buffer that has grown beyond this is not kept.
const KEPT_SIZE = 1 << 20
// Strings up to this length are encoded here: a call costs more than their characters do.
const SHORT_STRING = 20
// Bytes that become one string, out of which those of several frames are cut: a string that a
// program keeps may keep as many more in memory.
const TEXT_PIECE = 1024
// The room for a longer string is computed exactly rather than estimated.
const LONG_STRING = 4096

/**
 * A buffer that frames are appended to.
 */
class FrameWriter {
  constructor (size) {
    this.size = size
    this.buffer = Buffer.allocUnsafeSlow(size)
    this.length = 0
  }

  /**
   * Forgets the frames. A large buffer is given back.
   */
  reset () {
    this.length = 0
    if (this.buffer.length > KEPT_SIZE) this.buffer = Buffer.allocUnsafeSlow(this.size)
    return this
  }

  /**
   * Makes room for so many bytes. Throws a RangeError if the frames would have 4 GiB or more.
   */
  reserve (bytes) {
    const needed = this.length + bytes
    if (needed > this.buffer.length) {
      if (needed > MAX_LENGTH) {
        throw sizeError(`a batch of ${needed} bytes; the limit is below ${MAX_LENGTH + 1}`)
      }
      const size = Math.min(Math.max(needed, 2 * this.buffer.length), MAX_LENGTH)
      const grown = Buffer.allocUnsafeSlow(size)
      this.buffer.copy(grown, 0, 0, this.length)
      this.buffer = grown
    }
  }

  /**
   * Appends a string or bytes, without their length. Returns how many bytes.
   */
  raw (data) {
    if (typeof data === 'string') {
      const length = data.length
      const isLong = length > LONG_STRING
      let room = isLong ? Buffer.byteLength(data) : 3 * length
      if (this.length + room > this.buffer.length) {
        // An estimate must not be what exceeds the limit.
        if (!isLong) room = Buffer.byteLength(data)
        this.reserve(room)
      }

      const buffer = this.buffer
      const start = this.length

      if (length <= SHORT_STRING) {
        let i = 0
        for (; i < length; i++) {
          const unit = data.charCodeAt(i)
          if (unit > 127) break
          buffer[start + i] = unit
        }
        if (i === length) {
          this.length = start + length
          return length
        }
      }

      // With `room`: Node writes nothing where it is left to find 2 GiB of it or more.
      const written = buffer.utf8Write(data, start, room)
      this.length = start + written
      return written
    }

    const bytes = asBytes(data)
    const length = bytes.length
    if (this.length + length > this.buffer.length) this.reserve(length)
    this.buffer.set(bytes, this.length)
    this.length += length
    return length
  }

  /**
   * Appends a string or bytes behind their length, and returns that.
   */
  bytes (data) {
    if (this.length + 4 > this.buffer.length) this.reserve(4)
    const start = this.length
    this.length += 4
    const length = this.raw(data)
    const buffer = this.buffer
    buffer[start] = length
    buffer[start + 1] = length >>> 8
    buffer[start + 2] = length >>> 16
    buffer[start + 3] = length >>> 24
    return length
  }

  /**
   * Appends a put.
   */
  put (key, value) {
    this.#operation(PUT, key, value)
  }

  /**
   * Appends a deletion.
   */
  del (key) {
    this.#operation(DELETION, key)
  }

  // Appends a whole operation or, if it throws, nothing. A key and value that no table could hold
  // are a RangeError.
  #operation (kind, key, value) {
    const start = this.length

    try {
      if (start + 1 > this.buffer.length) this.reserve(1)
      this.buffer[this.length++] = kind
      let size = this.bytes(key)
      if (kind === PUT) size += this.bytes(value)
      if (size > MAX_ENTRY_SIZE) {
        throw sizeError(`a key and value of ${size} bytes; ` +
          `the limit is ${MAX_ENTRY_SIZE}, 8 MiB below 4 GiB`)
      }
    } catch (err) {
      this.length = start
      throw err
    }
  }
}

function asBytes (data) {
  if (data instanceof Uint8Array) return data
  if (ArrayBuffer.isView(data)) return new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
  const hint = data === null ? 'null' : typeof data
  throw new TypeError(`An encoding must produce a string or Uint8Array, received ${hint}`)
}

/**
 * Reads frames out of the first bytes of a buffer.
 */
class FrameReader {
  constructor (buffer, position) {
    this.buffer = buffer
    this.position = position
  }

  /**
   * Reads a length.
   */
  int () {
    const buffer = this.buffer
    const at = this.position
    this.position = at + 4
    return (buffer[at] | buffer[at + 1] << 8 | buffer[at + 2] << 16 | buffer[at + 3] << 24) >>> 0
  }

  /**
   * Reads bytes behind their length, as a string.
   */
  string () {
    const length = this.int()
    const start = this.position
    this.position = start + length
    return this.buffer.utf8Slice(start, start + length)
  }

  /**
   * Reads bytes behind their length, as a copy.
   */
  copy () {
    const length = this.int()
    const start = this.position
    this.position = start + length
    return copied(this.buffer, start, start + length)
  }

  /**
   * Reads the result of a lookup: a string, or a copy of the bytes, or undefined. Throws the error
   * that it failed with.
   */
  result (isString) {
    const length = this.int()
    if (length === ABSENT) return undefined
    if (length === FAILED) throw frameError(this.string())
    const start = this.position
    const end = this.position = start + length
    return isString ? this.buffer.utf8Slice(start, end) : copied(this.buffer, start, end)
  }
}

/**
 * Reads frames whose strings are ASCII: a call for several of them, instead of one for each.
 */
class TextReader extends FrameReader {
  #text = ''
  #start = 0
  #end = 0

  string () {
    const length = this.int()
    const start = this.position
    const end = this.position = start + length

    if (end > this.#end) {
      this.#start = start
      this.#end = Math.min(Math.max(end, start + TEXT_PIECE), this.buffer.length)
      this.#text = this.buffer.latin1Slice(start, this.#end)
    }

    return this.#text.slice(start - this.#start, end - this.#start)
  }
}

/**
 * Returns a copy of a part of a buffer.
 */
function copied (buffer, start, end) {
  const copy = Buffer.allocUnsafe(end - start)
  buffer.copy(copy, 0, start, end)
  return copy
}

exports.FrameWriter = FrameWriter
exports.FrameReader = FrameReader
exports.TextReader = TextReader
exports.asBytes = asBytes
exports.copied = copied
