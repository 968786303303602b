//! Figures as a reader sees them. Pure functions, callable from anywhere.
//!
//! Invariants:
//! 1. A ratio below 1 is never shown as 1.00 or more: ratios are cut, not rounded.
//! 2. A value that is not finite is shown as a dash, never as `NaN` or `inf`.

/// The placeholder for a missing value.
pub(crate) const NONE: &str = "–";

/// A ratio with two decimals, or three significant digits from 10 on, cut. Below 0.001 its bound.
pub(crate) fn ratio(value: f64) -> String {
    if !value.is_finite() {
        return NONE.to_owned();
    }
    // The small addend keeps 1.15, which binary floating point holds as 1.1499…, at 1.15.
    let cut = |factor: f64| (value * factor + 1e-9).floor() / factor;
    match value {
        v if v >= 100.0 => format!("{}×", thousands(cut(1.0))),
        v if v >= 10.0 => format!("{:.1}×", cut(10.0)),
        v if v >= 0.1 || v <= 0.0 => format!("{:.2}×", cut(100.0)),
        v if v < 0.001 => "<0.001×".to_owned(),
        _ => format!("{:.3}×", cut(1000.0)),
    }
}

/// The value with the prefix of its size: `4.03M`, `779k`, `48.6k`, `1,100`, `12`.
pub(crate) fn si(value: f64) -> String {
    if !value.is_finite() {
        return NONE.to_owned();
    }
    let sizes = [(1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    let magnitude = value.abs();
    if magnitude >= 1e18 {
        return format!("{value:.1e}");
    }
    if (999.5..9_999.5).contains(&magnitude) {
        return thousands(value);
    }
    // 999,600 becomes 1.00M, not 1000k.
    match sizes.into_iter().find(|(size, _)| magnitude >= size * 0.9995) {
        Some((size, letter)) => format!("{}{letter}", digits3(value / size)),
        None => digits3(value),
    }
}

/// Three significant digits, without an exponent; a whole number as it is.
fn digits3(value: f64) -> String {
    match value.abs() {
        v if v.fract() == 0.0 && v < 1000.0 => format!("{value:.0}"),
        v if v >= 99.95 => format!("{value:.0}"),
        v if v >= 9.995 => format!("{value:.1}"),
        v if v >= 0.9995 => format!("{value:.2}"),
        v if v >= 0.001 => format!("{value:.3}"),
        _ => format!("{value:.1e}"),
    }
}

/// An axis label: as [`si`], without needless zeros.
pub(crate) fn tick(value: f64) -> String {
    let text = si(value);
    let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, letter) = text.split_at(split);
    if !number.contains('.') || letter.starts_with('e') {
        return text;
    }
    format!("{}{letter}", number.trim_end_matches('0').trim_end_matches('.'))
}

/// A whole number with separators: `4,030,000`.
pub(crate) fn thousands(value: f64) -> String {
    if !value.is_finite() {
        return NONE.to_owned();
    }
    if value.abs() >= 1e18 {
        return format!("{value:.3e}");
    }
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    if value < 0.0 && digits != "0" {
        text.push('−');
    }
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// For tables: whole numbers with separators, three significant digits below 100.
pub(crate) fn precise(value: f64) -> String {
    if value.is_finite() && value.abs() < 99.95 { digits3(value) } else { thousands(value) }
}

/// Microseconds in the unit that suits: `850 ns`, `1.31 µs`, `3.02 ms`, `1.50 s`.
pub(crate) fn duration_us(value: f64) -> String {
    if !value.is_finite() {
        return NONE.to_owned();
    }
    match value {
        0.0 => "0".to_owned(),
        v if v < 0.9995 => format!("{} ns", digits3(v * 1e3)),
        v if v < 999.5 => format!("{} µs", digits3(v)),
        v if v < 999_500.0 => format!("{} ms", digits3(v / 1e3)),
        v => format!("{} s", digits3_grouped(v / 1e6)),
    }
}

fn digits3_grouped(value: f64) -> String {
    if value >= 999.5 { thousands(value) } else { digits3(value) }
}

/// Seconds as a person says them: `60 s`, `13 min 32 s`, `2 h 05 min`.
pub(crate) fn span(seconds: f64) -> String {
    if !seconds.is_finite() || seconds < 0.0 {
        return NONE.to_owned();
    }
    let whole = seconds.round() as u64;
    match whole {
        0..120 if seconds < 9.95 && seconds.fract() != 0.0 => format!("{seconds:.1} s"),
        0..120 => format!("{whole} s"),
        120..3600 => format!("{} min {:02} s", whole / 60, whole % 60),
        _ => format!("{} h {:02} min", whole / 3600, whole % 3600 / 60),
    }
}

/// Bytes with a decimal prefix: `190 MB`.
pub(crate) fn bytes(value: f64) -> String {
    let text = si(value);
    match text.char_indices().last() {
        _ if !value.is_finite() => text,
        _ if value.abs() < 999.5 => format!("{value:.0} B"),
        Some((at, letter)) if letter.is_ascii_alphabetic() => format!("{} {letter}B", &text[..at]),
        _ => format!("{text} B"),
    }
}

/// Bytes of one operation.
pub(crate) fn bytes_per_op(value: f64) -> String {
    if value > 0.0 && value < 1.0 { "<1 B".to_owned() } else { bytes(value) }
}

/// A fraction as a whole percentage.
pub(crate) fn percent(fraction: f64) -> String {
    if fraction.is_finite() { format!("{}%", thousands(fraction * 100.0)) } else { NONE.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_cut() {
        let shown =
            [0.0, 0.0004, 0.0123, 0.999, 1.0, 1.15, 1.999, 12.34, 150.9, f64::NAN, f64::INFINITY]
                .map(ratio);
        assert_eq!(
            shown,
            [
                "0.00×", "<0.001×", "0.012×", "0.99×", "1.00×", "1.15×", "1.99×", "12.3×", "150×",
                "–", "–"
            ]
        );
    }

    #[test]
    fn prefixes() {
        let shown = [0.0, 0.5, 12.0, 999.6, 48_600.0, 999_600.0, 4.03e6, 1e13, 1e30].map(si);
        assert_eq!(
            shown,
            ["0", "0.500", "12", "1,000", "48.6k", "1.00M", "4.03M", "10T", "1.0e30"]
        );
        assert_eq!([0.0, 5.0, 2_500_000.0, 100.0, 1e6].map(tick), ["0", "5", "2.5M", "100", "1M"]);
    }

    #[test]
    fn whole_numbers() {
        assert_eq!(
            [0.0, 999.0, 4_030_000.4, -1234.0].map(thousands),
            ["0", "999", "4,030,000", "−1,234"]
        );
        assert_eq!([0.25, 7.0, 99.99, 1100.0].map(precise), ["0.250", "7", "100", "1,100"]);
    }

    #[test]
    fn units() {
        let shown = [0.0, 0.85, 1.31, 3020.0, 1.5e6, 7.2e9].map(duration_us);
        assert_eq!(shown, ["0", "850 ns", "1.31 µs", "3.02 ms", "1.50 s", "7,200 s"]);
        assert_eq!(
            [4.5, 60.0, 812.0, 7500.0].map(span),
            ["4.5 s", "60 s", "13 min 32 s", "2 h 05 min"]
        );
        assert_eq!([0.0, 512.0, 190e6, 1.5e9].map(bytes), ["0 B", "512 B", "190 MB", "1.50 GB"]);
        assert_eq!([0.123, 4.0].map(percent), ["12%", "400%"]);
    }
}
