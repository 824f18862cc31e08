//! Dates and times, in the forms that Pulsar gives them.
//!
//! Points in time are [`SystemTime`]; local dates and times, which are points in time nowhere in particular, have plain
//! types of their own that any calendar library converts to and from.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::{BufMut, Bytes, BytesMut};
use stc_proto::pulsar::schema::Type;

use super::{Schema, SchemaInfo, incompatible, mismatch};
use crate::core::error::Error;

/// A day, without a time zone (data-model §6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LocalDate {
    /// Days since 1970-01-01; negative before.
    pub days_since_1970: i64,
}

/// A time of day, without a time zone (data-model §6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LocalTime {
    /// Nanoseconds since midnight, below 86,400,000,000,000.
    pub nanos_of_day: i64,
}

const NANOS_OF_DAY: i64 = 86_400_000_000_000;

impl LocalTime {
    fn checked(nanos_of_day: i64) -> Result<Self, Error> {
        match nanos_of_day {
            0..NANOS_OF_DAY => Ok(LocalTime { nanos_of_day }),
            _ => Err(incompatible(format!("{nanos_of_day} ns after midnight is no time of day"))),
        }
    }
}

/// Seconds since 1970, rounded down, and the nanoseconds above that.
fn split(time: SystemTime) -> Result<(i64, u32), Error> {
    let far = || incompatible("the time is too far from 1970");
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => Ok((i64::try_from(after.as_secs()).map_err(|_| far())?, after.subsec_nanos())),
        Err(before) => {
            let before = before.duration();
            let seconds = -i64::try_from(before.as_secs()).map_err(|_| far())?;
            match before.subsec_nanos() {
                0 => Ok((seconds, 0)),
                nanos => Ok((seconds.checked_sub(1).ok_or_else(far)?, 1_000_000_000 - nanos)),
            }
        }
    }
}

fn join(seconds: i64, nanos: u32) -> Result<SystemTime, Error> {
    let whole = Duration::from_secs(seconds.unsigned_abs());
    let base = if seconds < 0 { UNIX_EPOCH.checked_sub(whole) } else { UNIX_EPOCH.checked_add(whole) };
    base.and_then(|base| base.checked_add(Duration::from_nanos(nanos.into())))
        .ok_or_else(|| incompatible("the time is too far from 1970"))
}

/// Milliseconds since 1970, rounded down.
fn to_ms(time: SystemTime) -> Result<i64, Error> {
    let (seconds, nanos) = split(time)?;
    let ms = seconds.checked_mul(1000).and_then(|ms| ms.checked_add((nanos / 1_000_000).into()));
    ms.ok_or_else(|| incompatible("the time is too far from 1970"))
}

fn from_ms(ms: i64) -> Result<SystemTime, Error> {
    join(ms.div_euclid(1000), (ms.rem_euclid(1000) as u32) * 1_000_000)
}

fn long(kind: &str, payload: &[u8]) -> Result<i64, Error> {
    Ok(i64::from_be_bytes(payload.try_into().map_err(|_| mismatch(kind, payload.len()))?))
}

macro_rules! times {
    ($($(#[$doc:meta])* $schema:ident $type:ty, $name:literal $kind:ident, $encode:expr, $decode:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, Default)]
        pub struct $schema;

        impl Schema<$type> for $schema {
            fn info(&self) -> Option<SchemaInfo> {
                Some(SchemaInfo::plain($name, Type::$kind))
            }

            fn encode(&self, value: &$type) -> Result<Bytes, Error> {
                let number: Result<i64, Error> = $encode(*value);
                Ok(Bytes::copy_from_slice(&number?.to_be_bytes()))
            }

            fn decode(&self, payload: &Bytes) -> Result<$type, Error> {
                $decode(long($name, payload)?)
            }
        }
    )*};
}

times! {
    /// Milliseconds since 1970, eight bytes, big-endian: Pulsar's DATE.
    DateSchema SystemTime, "Date" Date, to_ms, from_ms;
    /// Milliseconds since 1970, eight bytes, big-endian: Pulsar's TIME.
    TimeSchema SystemTime, "Time" Time, to_ms, from_ms;
    /// Milliseconds since 1970, eight bytes, big-endian: Pulsar's TIMESTAMP.
    TimestampSchema SystemTime, "Timestamp" Timestamp, to_ms, from_ms;
    /// Days since 1970-01-01, eight bytes, big-endian: Pulsar's LOCAL_DATE.
    LocalDateSchema LocalDate, "LocalDate" LocalDate,
        |date: LocalDate| Ok(date.days_since_1970), |days_since_1970| Ok(LocalDate { days_since_1970 });
    /// Nanoseconds since midnight, eight bytes, big-endian: Pulsar's LOCAL_TIME.
    LocalTimeSchema LocalTime, "LocalTime" LocalTime,
        |time: LocalTime| LocalTime::checked(time.nanos_of_day).map(|time| time.nanos_of_day), LocalTime::checked;
}

/// Seconds since 1970 in eight bytes and nanoseconds in four, big-endian (data-model §6): Pulsar's INSTANT.
#[derive(Debug, Clone, Copy, Default)]
pub struct InstantSchema;

impl Schema<SystemTime> for InstantSchema {
    fn info(&self) -> Option<SchemaInfo> {
        Some(SchemaInfo::plain("Instant", Type::Instant))
    }

    fn encode(&self, value: &SystemTime) -> Result<Bytes, Error> {
        let (seconds, nanos) = split(*value)?;
        let mut bytes = BytesMut::with_capacity(12);
        bytes.put_i64(seconds);
        bytes.put_u32(nanos);
        Ok(bytes.freeze())
    }

    fn decode(&self, payload: &Bytes) -> Result<SystemTime, Error> {
        let (seconds, nanos) =
            payload.split_first_chunk().ok_or_else(|| mismatch("Instant", payload.len()))?;
        let nanos = nanos.try_into().map_err(|_| mismatch("Instant", payload.len()))?;
        match u32::from_be_bytes(nanos) {
            nanos @ 0..1_000_000_000 => join(i64::from_be_bytes(*seconds), nanos),
            nanos => Err(incompatible(format!("{nanos} ns are more than a second"))),
        }
    }
}

/// A local date and a local time one after the other (data-model §6): Pulsar's LOCAL_DATE_TIME.
#[derive(Debug, Clone, Copy, Default)]
pub struct LocalDateTimeSchema;

impl Schema<(LocalDate, LocalTime)> for LocalDateTimeSchema {
    fn info(&self) -> Option<SchemaInfo> {
        Some(SchemaInfo::plain("LocalDateTime", Type::LocalDateTime))
    }

    fn encode(&self, (date, time): &(LocalDate, LocalTime)) -> Result<Bytes, Error> {
        let mut bytes = BytesMut::with_capacity(16);
        bytes.put_i64(date.days_since_1970);
        bytes.put_i64(LocalTime::checked(time.nanos_of_day)?.nanos_of_day);
        Ok(bytes.freeze())
    }

    fn decode(&self, payload: &Bytes) -> Result<(LocalDate, LocalTime), Error> {
        let wrong = || mismatch("LocalDateTime", payload.len());
        let (date, time) = payload.split_first_chunk().ok_or_else(wrong)?;
        let date = LocalDate { days_since_1970: i64::from_be_bytes(*date) };
        Ok((date, LocalTime::checked(long("LocalDateTime", time)?)?))
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::tests::{bytes, round_trip},
        *,
    };

    /// What Pulsar's own Java client 5.0.1 makes of the same values.
    #[test]
    fn bytes_are_those_of_the_java_client() {
        let moment = UNIX_EPOCH + Duration::from_millis(1_700_000_000_123);
        round_trip(DateSchema, moment, &bytes("0000018bcfe5687b"));
        round_trip(TimestampSchema, moment, &bytes("0000018bcfe5687b"));
        round_trip(TimeSchema, UNIX_EPOCH + Duration::from_millis(12_345_678), &bytes("0000000000bc614e"));
        let instant = UNIX_EPOCH + Duration::new(1_700_000_000, 123_456_789);
        round_trip(InstantSchema, instant, &bytes("000000006553f100075bcd15"));
        let just_before = UNIX_EPOCH - Duration::from_nanos(1);
        round_trip(InstantSchema, just_before, &bytes("ffffffffffffffff3b9ac9ff"));
        let date = LocalDate { days_since_1970: 19_675 };
        let time = LocalTime { nanos_of_day: 3_723_000_000_004 };
        round_trip(LocalDateSchema, date, &bytes("0000000000004cdb"));
        round_trip(LocalTimeSchema, time, &bytes("00000362d417ae04"));
        round_trip(LocalDateTimeSchema, (date, time), &bytes("0000000000004cdb00000362d417ae04"));
    }

    #[test]
    fn milliseconds_before_1970_are_negative() {
        round_trip(TimeSchema, UNIX_EPOCH - Duration::from_millis(1_800_001), &(-1_800_001i64).to_be_bytes());
    }

    #[test]
    fn what_is_no_time_is_refused() {
        let day = Bytes::copy_from_slice(&NANOS_OF_DAY.to_be_bytes());
        assert!(LocalTimeSchema.decode(&day).is_err());
        assert!(LocalTimeSchema.encode(&LocalTime { nanos_of_day: -1 }).is_err());
        assert!(InstantSchema.decode(&Bytes::from_static(&[0; 11])).is_err());
        assert!(InstantSchema.decode(&Bytes::from_static(&[0x7f; 12])).is_err());
        assert!(LocalDateTimeSchema.decode(&Bytes::from_static(&[0; 8])).is_err());
    }
}
