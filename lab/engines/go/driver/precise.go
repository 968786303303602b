package driver

import "math"

// Powers to nearly all bits, as the C library computes them: [math.Pow] is off by so much that a
// zipfian rank among ten billion items differs from that of the other drivers once in ten thousand.

// double is the unevaluated sum of two floating-point numbers, the second of which is small.
type double struct {
	high, low float64
}

func (a double) plus(b double) double {
	sum := a.high + b.high
	part := sum - a.high
	rest := (a.high - (sum - part)) + (b.high - part) + a.low + b.low
	high := sum + rest
	return double{high, rest - (high - sum)}
}

func (a double) times(b double) double {
	product := a.high * b.high
	rest := math.FMA(a.high, b.high, -product)
	rest += float64(a.high*b.low) + float64(a.low*b.high)
	high := product + rest
	return double{high, rest - (high - product)}
}

func (a double) dividedBy(n float64) double {
	high := a.high / n
	return double{high, (math.FMA(-high, n, a.high) + a.low) / n}
}

// exponential sums the series for a small part of the exponent and squares the result.
func exponential(a double) double {
	const squarings, terms = 10, 14
	const scale = 1.0 / (1 << squarings)
	a = double{a.high * scale, a.low * scale}
	sum, term := double{1, 0}, double{1, 0}
	for n := 1.0; n <= terms; n++ {
		term = term.times(a).dividedBy(n)
		sum = sum.plus(term)
	}
	for range squarings {
		sum = sum.times(sum)
	}
	return sum
}

// logarithm improves the machine's logarithm by one step of Newton's method.
func logarithm(x float64) double {
	near := math.Log(x)
	ratio := exponential(double{-near, 0}).times(double{x, 0})
	rest := (ratio.high - 1) + ratio.low
	return double{near, 0}.plus(double{rest - rest*rest/2, 0})
}

// precisePower is slow: for what is computed once.
func precisePower(x, y float64) float64 {
	power := exponential(logarithm(x).times(double{y, 0}))
	return power.high + power.low
}

// powerNearWhole is precise for an exponent that is all but a whole number.
func powerNearWhole(x, y float64) float64 {
	whole := math.Round(y)
	power, square := double{1, 0}, double{x, 0}
	for n := uint(whole); ; square = square.times(square) {
		if n&1 == 1 {
			power = power.times(square)
		}
		if n >>= 1; n == 0 {
			break
		}
	}
	rest := (y - whole) * math.Log(x)
	return power.high + (power.low + power.high*rest)
}
