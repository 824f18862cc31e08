//! The keys: hand-picked ones of every kind that implementations get wrong, then seeded ones. And an atlas that finds
//! a key for a given half of the hash, so that vectors can stand exactly on a boundary.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stc_proto::KeyHash;

/// What makes a key worth testing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// No bytes at all.
    Empty,
    /// Letters, digits and punctuation of ASCII.
    Ascii,
    /// Control characters other than NUL.
    Control,
    /// Contains U+0000.
    Nul,
    /// Latin, Greek, Cyrillic and others beyond ASCII.
    Accented,
    /// Composed characters: the other half of a pair is of the kind `nfd`.
    Nfc,
    /// The same text, decomposed: another key.
    Nfd,
    /// Scripts of India, South-East Asia, the Caucasus and Ethiopia.
    Complex,
    /// Chinese, Japanese, Korean.
    Cjk,
    /// Hebrew, Arabic, Syriac, with and without direction marks.
    Rtl,
    /// Zero-width characters and byte order marks.
    ZeroWidth,
    /// Emoji, with joiners, skin tones and flags.
    Emoji,
    /// Other characters that are two code units in UTF-16 and four bytes in UTF-8, and the edges of the encodings.
    Supplementary,
    /// Several hundred bytes and more.
    Long,
    /// Characters of several blocks.
    Mixed,
}

/// The keys, each once, in file order.
pub struct Corpus(Vec<(Kind, String)>);

/// The fixed keys. Composed and decomposed forms are written as escapes, since an editor could change them.
const FIXED: &[(Kind, &[&str])] = &[
    (Kind::Empty, &[""]),
    (
        Kind::Ascii,
        &[
            " ",
            "  ",
            "a",
            "A",
            "0",
            "-1",
            "1.0",
            "null",
            "true",
            "key",
            "KEY",
            "key ",
            " key",
            "key_0",
            "order/42",
            "user@example.org",
            "tenant/namespace/topic",
            "a:b:c",
            "a,b;c",
            "\"quoted\"",
            "'quoted'",
            "back\\slash",
            "{\"json\":1}",
            "<xml/>",
            "100%",
            "%20",
            "2024-02-29T12:00:00Z",
            "00000000-0000-0000-0000-000000000000",
            "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
            "~",
            "!",
        ],
    ),
    (
        Kind::Control,
        &["\t", "\n", "\r\n", "\u{1}", "\u{1f}", "\u{7f}", "line\nbreak", "tab\tstop", "\u{85}", "\u{9f}"],
    ),
    (
        Kind::Nul,
        &["\0", "\0\0", "\0\0\0", "\0\0\0\0", "\0a", "a\0", "a\0b", "key\0", "key\0\0", "\u{1f511}\0"],
    ),
    (
        Kind::Accented,
        &[
            "\u{80}",
            "\u{ff}",
            "\u{100}",
            "\u{7ff}",
            "\u{800}",
            "naïve",
            "straße",
            "STRASSE",
            "ß",
            "ẞ",
            "Ωμέγα",
            "ключ",
            "Київ",
            "Ёлка",
            "İstanbul",
            "ıstanbul",
            "Łódź",
            "Þór",
            "ŉ",
            "ǆ",
            "ﬁn",
            "Ｋｅｙ",
            "½",
            "€",
            "№",
            "±1",
        ],
    ),
    (
        Kind::Nfc,
        &[
            "\u{e9}",
            "caf\u{e9}",
            "\u{c5}ngstr\u{f6}m",
            "\u{1ed7}",
            "\u{ac00}",
            "\u{d55c}\u{ae00}",
            "\u{304c}",
            "\u{915}\u{93c}",
            "\u{f1}and\u{fa}",
            "\u{3a9}\u{301}",
        ],
    ),
    (
        Kind::Nfd,
        &[
            "e\u{301}",
            "cafe\u{301}",
            "A\u{30a}ngstro\u{308}m",
            "o\u{302}\u{303}",
            "\u{1100}\u{1161}",
            "\u{1112}\u{1161}\u{11ab}\u{1100}\u{1173}\u{11af}",
            "\u{304b}\u{3099}",
            "\u{958}",
            "n\u{303}andu\u{301}",
            "\u{212b}ngstr\u{f6}m",
            "\u{2126}\u{301}",
            "a\u{323}\u{307}",
            "a\u{307}\u{323}",
        ],
    ),
    (
        Kind::Complex,
        &[
            "मुटक",
            "कुंजी",
            "क्ष",
            "চাবি",
            "ਕੁੰਜੀ",
            "ચાવી",
            "விசை",
            "కీ",
            "ಕೀ",
            "കീ",
            "යතුර",
            "กุญแจ",
            "ຄີ",
            "ကီး",
            "គន្លឹះ",
            "སྒོ",
            "მუხი",
            "გასაღები",
            "բանալի",
            "ቁልፍ",
            "ᠮᠣᠩᠭᠣᠯ",
        ],
    ),
    (
        Kind::Cjk,
        &[
            "键",
            "鍵",
            "钥匙",
            "キー",
            "かぎ",
            "ｷｰ",
            "ｶﾞ",
            "열쇠",
            "東京",
            "东京",
            "한국어",
            "漢字かな交じり",
            "〇",
            "々",
            "㍿",
            "\u{3000}",
            "\u{2f00}",
            "\u{4e00}",
            "\u{9fa5}",
            "\u{f900}",
            "注文-42",
            "用户:7",
        ],
    ),
    (
        Kind::Rtl,
        &[
            "מפתח",
            "שלום",
            "مفتاح",
            "کلید",
            "سلام",
            "ܡܦܬܚܐ",
            "ތަޅުދަނޑި",
            "\u{200f}abc",
            "abc\u{200f}",
            "\u{202e}abc\u{202c}",
            "\u{2067}abc\u{2069}",
            "مفتاح-42",
            "key-מפתח",
            "لا",
            "\u{fefb}",
            "١٢٣",
            "\u{61c}x",
        ],
    ),
    (
        Kind::ZeroWidth,
        &[
            "\u{200b}",
            "\u{200b}key",
            "key\u{200b}",
            "k\u{200b}ey",
            "a\u{200c}b",
            "a\u{200d}b",
            "\u{2060}key",
            "\u{feff}",
            "\u{feff}key",
            "key\u{feff}",
            "so\u{ad}ft",
            "a\u{34f}b",
            "\u{180e}",
        ],
    ),
    (
        Kind::Emoji,
        &[
            "🔑",
            "🔑🔑",
            "🔑🔑🔑",
            "a🔑",
            "ab🔑",
            "abc🔑",
            "abcd🔑",
            "🔑a",
            "🔑ab",
            "🔑abc",
            "x🔑y🔑z",
            "👍",
            "👍🏽",
            "👍🏿",
            "🇺🇦",
            "🇩🇪",
            "🏴󠁧󠁢󠁳󠁣󠁴󠁿",
            "👩‍👩‍👧‍👦",
            "❤",
            "❤\u{fe0f}",
            "❤\u{fe0e}",
            "1\u{fe0f}\u{20e3}",
            "☃",
            "order-🔑-42",
        ],
    ),
    (
        Kind::Supplementary,
        &[
            "\u{d7ff}",
            "\u{e000}",
            "\u{f8ff}",
            "\u{fffd}",
            "\u{fffe}",
            "\u{ffff}",
            "\u{10000}",
            "\u{10001}",
            "\u{1ffff}",
            "\u{20000}",
            "\u{e0001}",
            "\u{f0000}",
            "\u{10fffe}",
            "\u{10ffff}",
            "𐍈",
            "𝒦ey",
            "𝔎",
            "𠜎",
            "𠮷野家",
            "𐎀",
            "𓀀",
            "𝄞",
            "𐐷",
            "𐐏",
            "\u{10000}\u{ffff}",
            "\u{ffff}\u{10000}",
        ],
    ),
];

/// First and last code points of the blocks that seeded keys are drawn from.
const BLOCKS: &[(Kind, u32, u32)] = &[
    (Kind::Ascii, 0x20, 0x7e),
    (Kind::Accented, 0xa1, 0xff),
    (Kind::Accented, 0x391, 0x3a1),
    (Kind::Accented, 0x410, 0x44f),
    (Kind::Rtl, 0x5d0, 0x5ea),
    (Kind::Rtl, 0x621, 0x63a),
    (Kind::Complex, 0x905, 0x939),
    (Kind::Cjk, 0x3041, 0x3096),
    (Kind::Cjk, 0x4e00, 0x9fa5),
    (Kind::Cjk, 0xac00, 0xd7a3),
    (Kind::Emoji, 0x1f600, 0x1f64f),
    (Kind::Supplementary, 0x20000, 0x2a6d6),
];

/// How many keys there are at least.
const LEAST: usize = 1200;

impl Corpus {
    /// The keys of version 1 for the seed of version 1.
    pub fn new(seed: u64) -> Self {
        let mut keys: Vec<(Kind, String)> = (0..100).map(|i| (Kind::Ascii, format!("key-{i}"))).collect();
        for (kind, texts) in FIXED {
            keys.extend(texts.iter().map(|text| (*kind, (*text).to_owned())));
        }
        // Every number of bytes behind the last block of four, with and without several blocks before it.
        let letters = "abcdefghijklmnopqrstuvwxyz0123456789-abcdefghijklmnopqrstuvwxyz";
        keys.extend(
            (2..=letters.len()).filter_map(|n| letters.get(..n)).map(|s| (Kind::Ascii, s.to_owned())),
        );
        for length in [255, 256, 257, 258, 511, 1023, 1024, 1025, 4097] {
            keys.push((Kind::Long, "k".repeat(length)));
        }
        keys.extend(
            [("длинный-", 40), ("長い鍵", 60), ("🔑", 129), ("e\u{301}", 99)]
                .map(|(s, n)| (Kind::Long, s.repeat(n))),
        );
        let mut random = Random::new(seed);
        while keys.len() < LEAST {
            keys.push(random_key(&mut random));
        }
        let mut seen = BTreeSet::new();
        keys.retain(|(_, key)| seen.insert(key.clone()));
        Corpus(keys)
    }

    /// All keys with their kinds.
    pub fn iter(&self) -> impl Iterator<Item = (Kind, &str)> {
        self.0.iter().map(|(kind, key)| (*kind, key.as_str()))
    }

    /// Every `step`-th key that is no longer than `bytes`, starting with number `first`.
    pub fn sample(&self, first: usize, step: usize, bytes: usize) -> impl Iterator<Item = &str> {
        self.iter().map(|(_, key)| key).filter(move |key| key.len() <= bytes).skip(first).step_by(step)
    }
}

fn random_key(random: &mut Random) -> (Kind, String) {
    let mixed = random.below(3) == 0;
    let home = random.below(BLOCKS.len() as u64) as usize;
    let length = 1 + random.below(24);
    let text = (0..length)
        .filter_map(|_| {
            let block = if mixed { random.below(BLOCKS.len() as u64) as usize } else { home };
            let (_, first, last) = BLOCKS.get(block)?;
            char::from_u32(first + random.below(u64::from(last - first + 1)) as u32)
        })
        .collect();
    let kind = BLOCKS.get(home).map_or(Kind::Mixed, |(kind, ..)| *kind);
    (if mixed { Kind::Mixed } else { kind }, text)
}

/// SplitMix64: small, and the same on every machine.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The generator with this seed.
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    /// Any number.
    pub fn any(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number in `0..n`; 0 when `n` is 0.
    pub fn below(&mut self, n: u64) -> u64 {
        self.any().checked_rem(n).unwrap_or(0)
    }
}

/// For each value of either half of the hash a key `at-NUMBER` that has it.
pub struct Atlas {
    high: Vec<Option<u32>>,
    low: Vec<Option<u32>>,
}

impl Atlas {
    /// Hashes keys until each half has had nearly every value.
    pub fn new() -> Self {
        let mut atlas = Atlas { high: vec![None; 65536], low: vec![None; 65536] };
        for n in 0..1_000_000 {
            let hash = KeyHash::of(&key(n));
            for (half, value) in [(&mut atlas.high, hash.segment()), (&mut atlas.low, hash.bucket())] {
                if let Some(place @ None) = half.get_mut(usize::from(value)) {
                    *place = Some(n);
                }
            }
        }
        atlas
    }

    /// A key whose segment hash is `hash`, if there is one in the atlas.
    pub fn segment(&self, hash: u16) -> Option<String> {
        self.high.get(usize::from(hash)).copied().flatten().map(key)
    }

    /// A key whose bucket hash is `hash`, if there is one in the atlas.
    pub fn bucket(&self, hash: u16) -> Option<String> {
        self.low.get(usize::from(hash)).copied().flatten().map(key)
    }
}

impl Default for Atlas {
    fn default() -> Self {
        Atlas::new()
    }
}

fn key(n: u32) -> String {
    format!("at-{n}")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn there_are_enough_keys_of_every_kind_and_tail() {
        let corpus = Corpus::new(crate::SEED);
        let (mut kinds, mut tails) = (BTreeMap::<_, usize>::new(), [0; 4]);
        for (kind, key) in corpus.iter() {
            *kinds.entry(kind).or_default() += 1;
            tails[key.len() % 4] += 1;
        }
        assert!(corpus.iter().count() >= 1000, "{}", corpus.iter().count());
        assert!(tails.iter().all(|n| *n >= 150), "{tails:?}");
        assert_eq!(kinds.len(), 15, "{kinds:?}");
        assert!(kinds.iter().all(|(kind, n)| *n >= 10 || *kind == Kind::Empty), "{kinds:?}");
    }

    #[test]
    fn composed_and_decomposed_keys_differ() {
        let of = |wanted| {
            let (_, texts) = FIXED.iter().find(|(kind, _)| *kind == wanted).unwrap();
            *texts
        };
        for (composed, decomposed) in of(Kind::Nfc).iter().zip(of(Kind::Nfd)) {
            assert_ne!(KeyHash::of(composed), KeyHash::of(decomposed), "{composed}");
        }
    }

    #[test]
    fn the_atlas_finds_keys() {
        let atlas = Atlas::new();
        let found = (0..=u16::MAX).filter(|hash| atlas.segment(*hash).is_some()).count();
        assert!(found > 65_000, "{found}");
        for hash in [0x7FFF, 0x8000] {
            assert_eq!(atlas.segment(hash).map(|key| KeyHash::of(&key).segment()), Some(hash));
            assert_eq!(atlas.bucket(hash).map(|key| KeyHash::of(&key).bucket()), Some(hash));
        }
    }
}
