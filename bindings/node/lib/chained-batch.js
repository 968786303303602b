'use strict'

const { AbstractChainedBatch } = require('abstract-level')
const { FrameWriter } = require('./frames')

const INITIAL_SIZE = 256

/**
 * Operations that are collected one by one and written together.
 */
class ChainedBatch extends AbstractChainedBatch {
  #operations = new FrameWriter(INITIAL_SIZE)
  #write

  constructor (db, write) {
    super(db)
    this.#write = write
  }

  _put (key, value) {
    this.#operations.put(key, value)
  }

  _del (key) {
    this.#operations.del(key)
  }

  _clear () {
    this.#operations.reset()
  }

  _write (options) {
    return this.#write(this.#operations, options)
  }

  async _close () {
    this.#operations = null
  }
}

exports.ChainedBatch = ChainedBatch
