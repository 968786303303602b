package driver

import (
	"strconv"
	"strings"
)

// Settings are the command line of an engine program.
type Settings struct {
	// The directory of the database.
	DB string
	// Entries, threads and entries in a batch.
	Num     uint64
	Threads uint64
	Batch   uint64

	// Settings of the engine; 0 and the empty string stand for its default.
	CacheSize       uint64
	WriteBufferSize uint64
	BlockSize       uint64
	MaxOpenFiles    uint64
	BloomBits       uint64
	Compress        bool
	Variant         string

	benchmarks   []string
	reads        uint64
	keySize      uint64
	valueSize    uint64
	valueSizeMax uint64
	writeRate    uint64
	rate         uint64
	seed         uint64
	duration     float64
	interval     float64
	timeLimit    float64
	json         bool
	describe     bool
	version      bool
}

// FilterBits are the bits of filter for a key, for engines that have none unless they are asked
// for: their variant "filter" has ten.
func (s *Settings) FilterBits() uint64 {
	if s.BloomBits == 0 && s.Variant == "filter" {
		return 10
	}
	return s.BloomBits
}

func defaultSettings() Settings {
	return Settings{
		Num:        1_000_000,
		Threads:    1,
		Batch:      1000,
		Compress:   true,
		benchmarks: []string{"fillseq", "readrandom", "readseq"},
		keySize:    16,
		valueSize:  100,
		seed:       301,
		duration:   10,
	}
}

type numberFlag struct {
	value       *uint64
	least, most uint64
}

const (
	largestValue = 16 << 20
	anyNumber    = 999_999_999_999_999_999
)

func parseSettings(arguments []string) (Settings, error) {
	s := defaultSettings()
	numbers := map[string]numberFlag{
		"num":               {&s.Num, 1, 1_000_000_000},
		"reads":             {&s.reads, 0, 1_000_000_000_000},
		"key_size":          {&s.keySize, 1, 1024},
		"value_size":        {&s.valueSize, 1, largestValue},
		"value_size_max":    {&s.valueSizeMax, 0, largestValue},
		"threads":           {&s.Threads, 1, 256},
		"batch":             {&s.Batch, 1, 1_000_000},
		"write_rate":        {&s.writeRate, 0, 1_000_000_000},
		"keyspaces":         {new(uint64), 1, 1_000_000}, // for benchmarks that this driver does not have
		"rate":              {&s.rate, 0, 1_000_000_000},
		"seed":              {&s.seed, 0, anyNumber},
		"cache_size":        {&s.CacheSize, 0, anyNumber},
		"write_buffer_size": {&s.WriteBufferSize, 0, anyNumber},
		"block_size":        {&s.BlockSize, 0, anyNumber},
		"max_open_files":    {&s.MaxOpenFiles, 0, 1_000_000},
		"bloom_bits":        {&s.BloomBits, 0, 64},
	}
	times := map[string]*float64{
		"duration":   &s.duration,
		"interval":   &s.interval,
		"time_limit": &s.timeLimit,
	}
	switches := map[string]*bool{
		"--json": &s.json, "--describe": &s.describe, "--version": &s.version,
	}
	for _, argument := range arguments {
		if on, ok := switches[argument]; ok {
			*on = true
			continue
		}
		flag, isFlag := strings.CutPrefix(argument, "--")
		name, value, hasValue := strings.Cut(flag, "=")
		if !isFlag || !hasValue {
			return s, wrongUse("cannot read '%s'; flags are --name=value", argument)
		}
		number, isNumber := numbers[name]
		seconds, isTime := times[name]
		switch {
		case isNumber:
			if err := number.parse(name, value); err != nil {
				return s, err
			}
		case isTime:
			parsed, err := strconv.ParseFloat(value, 64)
			if err != nil || !(parsed >= 0 && parsed < 1e8) {
				return s, wrongUse("--%s wants seconds, not '%s'", name, value)
			}
			*seconds = parsed
		case name == "benchmarks":
			s.benchmarks = strings.Split(value, ",")
		case name == "compression" && (value == "snappy" || value == "none"):
			s.Compress = value == "snappy"
		case name == "variant":
			s.Variant = value
		case name == "trace":
			// For a benchmark that this driver does not have.
		case name == "db":
			s.DB = value
		default:
			return s, wrongUse("cannot read '%s'; lab/WORKLOADS.md lists the flags", argument)
		}
	}
	return s, s.validate()
}

func (f numberFlag) parse(name, value string) error {
	parsed, err := strconv.ParseUint(value, 10, 64)
	if err != nil {
		return wrongUse("--%s wants a whole number, not '%s'", name, value)
	}
	if parsed < f.least || parsed > f.most {
		return wrongUse("--%s must be from %d to %d", name, f.least, f.most)
	}
	*f.value = parsed
	return nil
}

func (s *Settings) validate() error {
	// Twice num: ycsbd and ycsbe put keys above it.
	if s.keySize < uint64(len(strconv.FormatUint(2*s.Num, 10))) {
		return wrongUse("--key_size=%d is too small for the keys of --num=%d", s.keySize, s.Num)
	}
	if s.reads == 0 {
		s.reads = s.Num
	}
	if s.DB == "" && !s.describe && !s.version {
		return wrongUse("--db=DIR is missing")
	}
	return nil
}
