'use strict'

const { asBytes } = require('./frames')

// Bits of the flags that come with a range; `src/range.rs` reads them.
const LOWER = exports.LOWER = 1
const UPPER = exports.UPPER = 2
const REVERSE = exports.REVERSE = 4
exports.KEYS = 8
exports.VALUES = 16
exports.FILL_CACHE = 32

/**
 * Appends the bounds of a range: the smallest key, and the one before which it ends. Returns flags.
 *
 * A zero byte behind a key makes the next possible key.
 */
exports.write = function (writer, options) {
  let flags = options.reverse ? REVERSE : 0

  if (options.gte !== undefined) {
    writer.bytes(options.gte)
    flags |= LOWER
  } else if (options.gt !== undefined) {
    writer.bytes(successor(options.gt))
    flags |= LOWER
  }

  if (options.lte !== undefined) {
    writer.bytes(successor(options.lte))
    flags |= UPPER
  } else if (options.lt !== undefined) {
    writer.bytes(options.lt)
    flags |= UPPER
  }

  return flags
}

function successor (key) {
  if (typeof key === 'string') return key + '\0'
  const bytes = asBytes(key)
  const next = new Uint8Array(bytes.length + 1)
  next.set(bytes)
  return next
}
