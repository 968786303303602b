'use strict'

// Buffers of this thread that calls into Rust write to and read from. Their contents are used
// before anything else can run, so that one of each is enough.

const { FrameWriter } = require('./frames')

const writer = new FrameWriter(64 << 10)
const target = Buffer.allocUnsafeSlow(256 << 10)

/**
 * Returns an empty writer. Its frames last until the next call.
 */
exports.writer = function () {
  return writer.reset()
}

/**
 * Returns a buffer that begins with the bytes of a ticket. They last until the next call.
 */
exports.take = function (native, ticket) {
  const size = native.take(ticket, target)
  return size <= target.length ? target : exports.takeOwned(native, ticket, size)
}

/**
 * Returns the bytes of a ticket in a buffer of their own.
 */
exports.takeOwned = function (native, ticket, size) {
  try {
    const buffer = Buffer.allocUnsafeSlow(size)
    native.take(ticket, buffer)
    return buffer
  } catch (err) {
    native.discard(ticket)
    throw err
  }
}

exports.target = target
