'use strict'

const MAX = 0xffffffff

const numbers = {
  cacheSize: 8 << 20,
  writeBufferSize: 4 << 20,
  blockSize: 4096,
  maxOpenFiles: 1000,
  blockRestartInterval: 16,
  maxFileSize: 2 << 20,
  valueLog: 0
}

/**
 * Returns the options of `open` with every default filled in.
 */
exports.openOptions = function (options) {
  const result = {
    createIfMissing: options.createIfMissing,
    errorIfExists: options.errorIfExists,
    compression: options.compression !== false,
    multithreading: !!options.multithreading
  }

  for (const [name, fallback] of Object.entries(numbers)) {
    const value = options[name] ?? fallback
    if (typeof value !== 'number' || !(value >= 0 && value <= MAX)) {
      throw new TypeError(`The option '${name}' must be a number from 0 to ${MAX}`)
    }
    result[name] = Math.floor(value)
  }

  return result
}

/**
 * Returns a location if it is one, or throws.
 */
exports.location = function (location) {
  if (typeof location !== 'string' || location === '') {
    throw new TypeError("The first argument 'location' must be a non-empty string")
  }
  if (location.includes('\0')) {
    throw new TypeError("The first argument 'location' must not contain a zero byte")
  }
  return location
}

/**
 * Throws if the signal in options of an iterator is none.
 */
exports.checkSignal = function (options) {
  const signal = options?.signal
  if (signal != null && (typeof signal.addEventListener !== 'function' ||
      typeof signal.removeEventListener !== 'function')) {
    throw new TypeError("The option 'signal' must be an AbortSignal")
  }
}
