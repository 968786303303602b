package driver

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"
)

// Main runs what the command line asks for and ends the program. describe is asked for the variant
// that the settings name.
func Main(describe func(*Settings) Description, open func(*Settings) Engine) {
	name := describe(&Settings{}).Engine
	err := runProgram(name, describe, open)
	if err == nil {
		os.Exit(0)
	}
	fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
	var usage *usageError
	if errors.As(err, &usage) {
		os.Exit(2)
	}
	os.Exit(3)
}

func runProgram(name string, describe func(*Settings) Description,
	open func(*Settings) Engine) error {
	settings, err := parseSettings(os.Args[1:])
	if err != nil {
		return err
	}
	description := describe(&settings)
	if !description.hasVariant(settings.Variant) {
		return wrongUse("%s has no variant '%s'; --describe lists them", name, settings.Variant)
	}
	if settings.version {
		return printLine(name + " " + description.Version)
	}
	if settings.describe {
		line, err := description.line()
		if err != nil {
			return err
		}
		return printLine(line)
	}
	var asked []benchmark
	for _, name := range settings.benchmarks {
		benchmark, err := findBenchmark(name)
		if err != nil {
			return err
		}
		asked = append(asked, benchmark)
	}
	d := &driver{
		settings:    &settings,
		description: &description,
		pool:        newPool(settings.seed, max(settings.valueSize, settings.valueSizeMax)),
		engine:      open(&settings),
	}
	for _, benchmark := range asked {
		if err := d.run(benchmark); err != nil {
			_ = d.close()
			return err
		}
	}
	return d.close()
}

// driver keeps the database open between benchmarks, and prints a line for each.
type driver struct {
	settings    *Settings
	description *Description
	pool        []byte
	largePool   []byte
	zipfian     *zipfian
	engine      Engine
	isOpen      bool
	newest      atomic.Uint64
}

func (d *driver) close() error {
	if !d.isOpen {
		return nil
	}
	d.isOpen = false
	return d.engine.Close()
}

func (d *driver) open(use Use) error {
	if err := d.engine.Open(use); err != nil {
		return err
	}
	d.isOpen = true
	return nil
}

func (d *driver) run(b benchmark) error {
	id := d.description.Engine
	if d.settings.Variant != "" {
		id += "-" + d.settings.Variant
	}
	why := d.description.Unsupported[b.name]
	if why == "" {
		why = b.missing(d.settings.rate, d.description.Expires)
	}
	if why != "" {
		var j jsonLine
		j.string("benchmark", b.name).string("engine", id).string("unsupported", why)
		return d.print(j.line(), b.name+": "+why)
	}
	if err := d.prepare(&b); err != nil {
		return err
	}
	r := &result{benchmark: b.name, engine: id}
	if b.reportsFound() {
		r.found = new(uint64)
	}
	limit := d.settings.timeLimit
	if b.isTimed() && (limit == 0 || limit > d.settings.duration) {
		limit = d.settings.duration
	}
	c := &crew{benchmark: b.name, seconds: limit, interval: d.settings.interval}
	var err error
	if b.concernsAll() {
		err = c.run(1, func(_ uint64, m *meter, start func()) error {
			if b.kind == cold {
				if err := d.closeCold(); err != nil {
					return err
				}
			}
			start()
			return d.onAll(&b, m, r)
		}, nil, r)
	} else {
		err = d.runThreads(&b, c, r)
	}
	if err != nil {
		return err
	}
	r.truncated = r.truncated || b.isTimed() && limit < d.settings.duration
	r.diskBytes = diskBytes(d.settings.DB)
	return d.print(r.json(), r.words())
}

func (d *driver) useOf(b *benchmark) Use {
	use := Use{Sessions: d.settings.Threads, Synchronous: b.isSynchronous()}
	if b.isSingle() {
		use.Sessions = 1
	}
	if b.kind == getWhilePutting {
		use.Sessions++
	}
	return use
}

func (d *driver) prepare(b *benchmark) error {
	if b.isEmpty() {
		if err := d.close(); err != nil {
			return err
		}
		if err := emptyDirectory(d.settings.DB); err != nil {
			return err
		}
		d.newest.Store(d.settings.Num - 1)
	}
	if b.kind == latest && d.zipfian == nil {
		z := newZipfian(d.settings.Num)
		d.zipfian = &z
	}
	if b.hasLargeValues() && d.largePool == nil {
		d.largePool = newPool(d.settings.seed, largeValue)
	}
	if d.isOpen {
		return d.engine.Adapt(d.useOf(b))
	}
	if err := createDirectory(d.settings.DB); err != nil {
		return err
	}
	return d.open(d.useOf(b))
}

func (d *driver) runThreads(b *benchmark, c *crew, r *result) error {
	t := task{
		benchmark: *b,
		settings:  d.settings,
		pool:      d.pool,
		zipfian:   d.zipfian,
		newest:    &d.newest,
		threads:   d.settings.Threads,
	}
	if b.isSingle() {
		t.threads = 1
	}
	if b.hasLargeValues() {
		t.pool = d.largePool
	}
	work := func(thread uint64, m *meter, start func()) error {
		session, err := d.engine.NewSession()
		if err != nil {
			return err
		}
		o := newOperations(t, thread, session, m)
		start()
		if thread < t.threads {
			err = o.run()
		} else {
			err = o.putBesideReaders()
		}
		return errors.Join(err, session.Close())
	}
	var beside body
	if b.kind == getWhilePutting {
		beside = work
	}
	return c.run(t.threads, work, beside, r)
}

func (d *driver) onAll(b *benchmark, m *meter, r *result) error {
	var err error
	operations := uint64(1)
	switch b.kind {
	case compact:
		err = d.engine.Compact()
	case waitCompact:
		var idle time.Duration
		idle, err = d.engine.WaitCompact()
		m.endBefore(idle)
		return err
	case cold:
		err = d.open(d.useOf(b))
	case selfTest:
		operations = testPasses * testOperations
		r.digest, err = runSelfTest(d.settings, d.engine, d.useOf(b))
	}
	m.end(operations, 0)
	return err
}

func (d *driver) closeCold() error {
	if err := d.close(); err != nil {
		return err
	}
	return dropPages(d.settings.DB)
}

func (d *driver) print(json, words string) error {
	if d.settings.json {
		return printLine(json)
	}
	return printLine(words)
}
