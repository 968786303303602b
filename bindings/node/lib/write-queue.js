'use strict'

const { codeError } = require('./errors')

/**
 * The writes of one database: run in the order of their calls, everything that has come together
 * as one job.
 */
class WriteQueue {
  #native
  #done
  #waiting = []
  #running = false
  #run = () => this.#start()

  /**
   * `done` is told how many promises have been settled.
   */
  constructor (native, done) {
    this.#native = native
    this.#done = done
  }

  /**
   * Whether nothing is queued or under way.
   */
  get isIdle () {
    return !this.#running && this.#waiting.length === 0
  }

  /**
   * Returns the promise of the write that was queued natively right before.
   */
  push () {
    return new Promise((resolve, reject) => {
      // What is queued in this turn of the event loop is one job.
      if (this.#waiting.push({ resolve, reject }) === 1 && !this.#running) queueMicrotask(this.#run)
    })
  }

  #start () {
    const writes = this.#waiting
    this.#waiting = []
    this.#running = true
    let job

    try {
      job = this.#native.runWrites()
    } catch (err) {
      return this.#settle(writes, err, null)
    }

    job.then(
      (failures) => this.#settle(writes, null, failures),
      (err) => this.#settle(writes, err, null)
    )
  }

  #settle (writes, err, failures) {
    this.#running = false
    if (this.#waiting.length > 0) this.#start()

    if (err !== null) {
      for (const write of writes) write.reject(err)
    } else {
      // The promise of a write that failed is settled first: resolving it is no use then.
      for (const { index, code, message } of failures ?? []) {
        writes[index].reject(codeError(code, message))
      }
      for (const write of writes) write.resolve()
    }

    this.#done(writes.length)
  }
}

exports.WriteQueue = WriteQueue
