//! Times as the admin REST prints them.

use crate::core::Millis;

/// A time as ISO 8601 in UTC, with the fraction that it needs, as Java's `Instant` prints it: `2026-11-30T09:18:08.403Z`.
pub(super) fn instant(ms: Millis) -> String {
    let (days, in_day) = (ms / 86_400_000, ms % 86_400_000);
    let (year, month, day) = civil(days);
    let (seconds, fraction) = (in_day / 1000, in_day % 1000);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let fraction = match format!("{fraction:03}").trim_end_matches('0') {
        "" => String::new(),
        digits => format!(".{digits}"),
    };
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}Z")
}

/// Year, month and day of a day since 1970, by counting in eras of 400 years that begin in March.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, day_of_year - (153 * shifted + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_printed_as_the_recorded_broker_printed_them() {
        for (ms, text) in [
            (1_796_030_288_403, "2026-11-30T09:18:08.403Z"),
            (1_796_030_287_380, "2026-11-30T09:18:07.38Z"),
            (951_782_400_000, "2000-02-29T00:00:00Z"),
            (0, "1970-01-01T00:00:00Z"),
        ] {
            assert_eq!(instant(ms), text);
        }
    }
}
