package driver

import (
	"math"
	"math/bits"
)

func mix(z uint64) uint64 {
	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9
	z = (z ^ (z >> 27)) * 0x94D049BB133111EB
	return z ^ (z >> 31)
}

// random is splitmix64: a stream for every benchmark and thread.
type random struct {
	state uint64
}

func newRandom(seed, benchmark, thread uint64) random {
	return random{state: mix(mix(mix(seed)+benchmark) + thread)}
}

const streamStep = 0x9E3779B97F4A7C15

func (r *random) next() uint64 {
	r.state += streamStep
	return mix(r.state)
}

// at returns what next does after so many more calls.
func (r *random) at(before uint64) uint64 {
	return mix(r.state + (before+1)*streamStep)
}

func (r *random) below(bound uint64) uint64 {
	return r.next() % bound
}

// unit returns a number that is at least 0 and below 1.
func (r *random) unit() float64 {
	return float64(r.next()>>11) * 0x1p-53
}

// pareto is basho_bench's pareto_int with shape 1.5.
type pareto struct {
	num   uint64
	scale float64
}

func newPareto(num uint64, fraction float64) pareto {
	return pareto{num: num, scale: float64(num) * fraction * 0.5}
}

func (p *pareto) next(r *random) uint64 {
	factor := math.Pow(1-r.unit(), -1/1.5) - 1
	return uint64(math.Floor(factor*p.scale)) % p.num
}

// Variables: constants would be computed without rounding, and others than in the other drivers.
var (
	zipfianTheta    = 0.99
	zipfianExponent = 1 / (1 - zipfianTheta)
	halfToTheta     = precisePower(0.5, zipfianTheta)
)

// zipfian ranks items by the method of Gray et al., "Quickly generating billion-record synthetic
// databases" (SIGMOD 1994), with YCSB's theta.
type zipfian struct {
	num       uint64
	zeta, eta float64
}

func newZipfian(num uint64) zipfian {
	zeta := 0.0
	for i := uint64(1); i <= num; i++ {
		zeta += 1 / math.Pow(float64(i), zipfianTheta)
	}
	return zipfianWith(num, zeta)
}

// zipfianWith takes a zeta that is known.
func zipfianWith(num uint64, zeta float64) zipfian {
	share := precisePower(2/float64(num), 1-zipfianTheta)
	eta := (1 - share) / (1 - (1+halfToTheta)/zeta)
	return zipfian{num: num, zeta: zeta, eta: eta}
}

func (z *zipfian) rank(r *random) uint64 {
	unit := r.unit()
	scaled := unit * z.zeta
	if scaled < 1 {
		return 0
	}
	if scaled < 1+halfToTheta {
		return min(z.num-1, 1)
	}
	base := float64(z.eta*unit) - z.eta + 1
	return min(z.num-1, uint64(float64(z.num)*powerNearWhole(base, zipfianExponent)))
}

// scrambledZipfian is YCSB's ScrambledZipfianGenerator: ranks among ten billion items, whatever the
// database holds, scattered over its keys.
type scrambledZipfian struct {
	num   uint64
	ranks zipfian
}

func newScrambledZipfian(num uint64) scrambledZipfian {
	return scrambledZipfian{num: num, ranks: zipfianWith(10_000_000_000, 26.46902820178302)}
}

func (s *scrambledZipfian) next(r *random) uint64 {
	return mix(s.ranks.rank(r)) % s.num
}

// share returns the first operation of a thread that has the given part of all: operations * part /
// parts, without overflow.
func share(operations, part, parts uint64) uint64 {
	high, low := bits.Mul64(operations, part)
	quotient, _ := bits.Div64(high, low, parts)
	return quotient
}
