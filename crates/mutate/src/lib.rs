//! Damaged copies of good inputs, for tests: what disks, editors, other programs and attackers make of a file.
//!
//! The same seed gives the same copies. A test has a fixed one, so that it finds the same today and tomorrow; the
//! environment variable [`SEED_VARIABLE`] gives another.

/// Environment variable with the seed of all mutations.
pub const SEED_VARIABLE: &str = "PGDYNO_MUTATION_SEED";

/// Numbers that programs are not written for.
pub const NUMBERS: [&str; 20] = [
    "0",
    "-0.0",
    "-1",
    "1",
    "0.1",
    "255",
    "65536",
    "2147483647",
    "2147483648",
    "4294967296",
    "9007199254740992",
    "9007199254740993",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "1e308",
    "1e-320",
    "1e400",
    "NaN",
];

/// Pieces of text that mean something to some program, or to none.
const PIECES: [&str; 28] = [
    "\0",
    "\t",
    "\r",
    "\n",
    "\n\n",
    "\"",
    "'",
    "\"\"\"",
    "\\",
    "/*",
    "--",
    "$$",
    ";",
    ":",
    "::",
    ",",
    "=",
    "#",
    "[",
    "]",
    "{",
    "}",
    "(",
    "%",
    "\u{fffd}",
    "\u{202e}",
    "\u{1f4a9}",
    "\u{1b}[2J",
];

/// A source of mutations.
#[derive(Clone, Debug)]
pub struct Mutator {
    state: u64,
}

impl Mutator {
    /// A source with this seed, unless the environment names another. Prints it: a failed test shows it.
    #[expect(clippy::print_stderr, reason = "only tests call it")]
    pub fn new(seed: u64) -> Self {
        let given = std::env::var(SEED_VARIABLE).ok().and_then(|given| given.parse().ok());
        let seed = given.unwrap_or(seed);
        eprintln!("{SEED_VARIABLE}={seed}");
        Self { state: seed }
    }

    /// A random number (splitmix64, by Sebastiano Vigna).
    pub fn random(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A random number below `end`; 0 if that is 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.random() % (end.max(1) as u64)) as usize
    }

    /// One of these.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }

    /// A damaged copy of bytes: bits flipped, parts cut, removed, repeated, moved or overwritten.
    pub fn bytes(&mut self, of: &[u8]) -> Vec<u8> {
        let mut bytes = of.to_vec();
        for _ in 0..=self.below(3) {
            let (from, to) = self.range(bytes.len());
            match self.below(8) {
                0 | 1 if !bytes.is_empty() => {
                    let at = self.below(bytes.len());
                    bytes[at] ^= 1 << self.below(8);
                }
                2 => bytes.truncate(from),
                3 => drop(bytes.drain(from..to)),
                4 => {
                    let part = bytes[from..to].to_vec();
                    bytes.splice(from..from, part);
                }
                5 => {
                    let part: Vec<u8> = bytes.drain(from..to).collect();
                    let at = self.below(bytes.len());
                    bytes.splice(at..at, part);
                }
                6 => bytes[from..to].fill(*self.pick(&[0, 0xff, 0x7f, 0x80])),
                _ => {
                    let random: Vec<u8> = (0..=self.below(16)).map(|_| self.random() as u8).collect();
                    bytes.splice(from..(from + random.len()).min(bytes.len()).max(from), random);
                }
            }
        }
        bytes
    }

    /// A damaged copy of a text: numbers replaced by extreme ones, words, lines and characters removed, repeated, swapped
    /// or inserted.
    pub fn text(&mut self, of: &str) -> String {
        let mut text = of.to_owned();
        for _ in 0..=self.below(3) {
            text = match self.below(8) {
                0..=2 => self.with_other_number(&text),
                3 | 4 => self.with_other_lines(&text),
                5 => self.with_other_words(&text),
                6 => {
                    let at = self.boundary(&text);
                    let repeated = self.pick(&[1, 1, 1, 2, 300]);
                    format!("{}{}{}", &text[..at], self.pick(&PIECES).repeat(*repeated), &text[at..])
                }
                _ => {
                    let (a, b) = (self.boundary(&text), self.boundary(&text));
                    let (from, to) = (a.min(b), a.max(b));
                    match self.below(3) {
                        0 => text[..from].to_owned(),
                        _ => {
                            let to = text.ceil_char_boundary((from + self.below(6)).min(to));
                            format!("{}{}", &text[..from], &text[to..])
                        }
                    }
                }
            };
        }
        text
    }

    fn range(&mut self, len: usize) -> (usize, usize) {
        let from = self.below(len + 1);
        // Most are short: a whole part of a file is seldom lost.
        let most = if self.below(4) == 0 { len } else { 16 };
        (from, (from + self.below(most)).min(len))
    }

    fn boundary(&mut self, text: &str) -> usize {
        text.floor_char_boundary(self.below(text.len() + 1))
    }

    fn with_other_number(&mut self, text: &str) -> String {
        let is_part = |c: char| c.is_ascii_digit() || c == '.';
        let starts: Vec<usize> = text
            .char_indices()
            .filter(|(at, c)| c.is_ascii_digit() && !text[..*at].ends_with(is_part))
            .map(|(at, _)| at)
            .collect();
        if starts.is_empty() {
            return text.to_owned();
        }
        let start = *self.pick(&starts);
        let end = text[start..].find(|c| !is_part(c)).map_or(text.len(), |length| start + length);
        format!("{}{}{}", &text[..start], self.pick(&NUMBERS), &text[end..])
    }

    fn with_other_lines(&mut self, text: &str) -> String {
        let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
        self.rearrange(&mut lines);
        lines.concat()
    }

    fn with_other_words(&mut self, text: &str) -> String {
        let mut words: Vec<&str> = text.split_inclusive(|c: char| !c.is_alphanumeric() && c != '_').collect();
        self.rearrange(&mut words);
        words.concat()
    }

    /// Removes, repeats or swaps.
    fn rearrange(&mut self, parts: &mut Vec<&str>) {
        if parts.is_empty() {
            return;
        }
        let (one, other) = (self.below(parts.len()), self.below(parts.len()));
        match self.below(3) {
            0 => drop(parts.remove(one)),
            1 => parts.insert(other, parts[one]),
            _ => parts.swap(one, other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_copies_and_most_differ_from_the_input() {
        let input = "name = 'n'\nclients = [1, 16]\nduration = '3.5s'\n";
        let copies = |seed| {
            let mut mutator = Mutator { state: seed };
            (0..200).map(|_| (mutator.text(input), mutator.bytes(input.as_bytes()))).collect::<Vec<_>>()
        };
        assert_eq!(copies(1), copies(1));
        assert_ne!(copies(1), copies(2));
        let different =
            copies(1).iter().filter(|(text, bytes)| text != input && bytes != input.as_bytes()).count();
        assert!(different > 150, "{different}");
    }

    #[test]
    fn nothing_is_too_short() {
        let mut mutator = Mutator { state: 1 };
        for input in ["", "1", "ä", "\n"] {
            for _ in 0..500 {
                mutator.text(input);
                mutator.bytes(input.as_bytes());
            }
        }
    }
}
