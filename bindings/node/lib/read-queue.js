'use strict'

const { FrameReader } = require('./frames')
const scratch = require('./scratch')

// As many jobs as libuv has threads, unless a program has changed that.
const MAX_JOBS = 4
// Fewer lookups than this are not worth another job.
const MIN_LOOKUPS = 16

/**
 * The single lookups of one database: what has come together is divided among a few jobs.
 */
class ReadQueue {
  #native
  #done
  #waiting = []
  #jobs = 0
  #isScheduled = false
  #run = () => this.#start()

  /**
   * `done` is told how many promises have been settled.
   */
  constructor (native, done) {
    this.#native = native
    this.#done = done
  }

  /**
   * Returns the promise of the lookup that was queued natively right before. `read` takes its
   * result from a reader.
   */
  push (read) {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ read, resolve, reject })

      if (!this.#isScheduled && this.#jobs < MAX_JOBS) {
        // What is queued in this turn of the event loop is looked up together.
        this.#isScheduled = true
        queueMicrotask(this.#run)
      }
    })
  }

  #start () {
    this.#isScheduled = false
    const share = Math.max(MIN_LOOKUPS, Math.ceil(this.#waiting.length / MAX_JOBS))

    while (this.#waiting.length > 0 && this.#jobs < MAX_JOBS) {
      const lookups = this.#waiting.splice(0, share)
      let job

      try {
        job = this.#native.runLookups(lookups.length)
      } catch (err) {
        this.#fail(lookups, err)
        continue
      }

      this.#jobs++
      job.then(
        (ticket) => this.#settle(lookups, null, ticket),
        (err) => this.#settle(lookups, err, 0)
      )
    }
  }

  #settle (lookups, err, ticket) {
    this.#jobs--
    if (this.#waiting.length > 0) this.#start()
    let reader

    try {
      if (err !== null) throw err
      reader = new FrameReader(scratch.take(this.#native, ticket), 0)
    } catch (err) {
      this.#fail(lookups, err)
      return
    }

    for (const lookup of lookups) {
      try {
        lookup.resolve(lookup.read(reader))
      } catch (err) {
        lookup.reject(err)
      }
    }

    this.#done(lookups.length)
  }

  #fail (lookups, err) {
    for (const lookup of lookups) lookup.reject(err)
    this.#done(lookups.length)
  }
}

exports.ReadQueue = ReadQueue
