'use strict'

/**
 * Returns an error with a code.
 */
exports.codeError = function (code, message) {
  const err = new Error(message)
  err.code = code
  return err
}

/**
 * Returns the error for data that is too large.
 */
exports.sizeError = function (message) {
  const err = new RangeError(message)
  err.code = 'LEVEL_INVALID_ARGUMENT'
  return err
}

/**
 * Returns the error that a read is rejected with when its signal is aborted.
 */
exports.abortError = function () {
  const err = exports.codeError('LEVEL_ABORTED', 'Operation has been aborted')
  err.name = 'AbortError'
  return err
}

/**
 * Returns the error of a frame: its code, a line break, its message.
 */
exports.frameError = function (text) {
  const at = text.indexOf('\n')
  return exports.codeError(text.slice(0, at), text.slice(at + 1))
}
