// SPDX-License-Identifier: GPL-2.0-only

//! Tests of whole files: the entries that they give, and each error that they can have.

use oxib_data_file::{
    resolver::{
        LookupResult,
        Resolver, //
    },
    Entry,
    FileSet, //
};

/// A resolver: `n1` to `n9` have the addresses 10.0.0.1 to 10.0.0.9 and fd00::1 to fd00::9.
struct Nodes;

impl Resolver for Nodes {
    fn look_up(&self, name: &str) -> LookupResult {
        let number: u8 = name
            .strip_prefix('n')
            .and_then(|rest| rest.parse().ok())
            .filter(|number| (1..=9).contains(number))
            .ok_or("unknown")?;
        Ok(vec![
            format!("10.0.0.{number}").parse().unwrap(),
            format!("fd00::{number}").parse().unwrap(),
        ])
    }
}

/// Parses files of those names and contents.
fn parse(contents: &[(&str, &str)]) -> Result<Vec<Entry>, Vec<String>> {
    let mut files = FileSet::new();
    for (name, text) in contents {
        files.add(name, text.as_bytes(), |_| {});
    }
    files
        .finish(&Nodes, || {})
        .map_err(|errors| errors.iter().map(ToString::to_string).collect())
}

/// Parses a file, and writes its entries as lines.
fn lines(text: &str) -> Vec<String> {
    let entries = parse(&[("f", text)]).unwrap();
    entries.iter().map(ToString::to_string).collect()
}

#[test]
fn lines_and_their_entries() {
    let table: &[(&str, &[&str])] = &[
        ("", &[]),
        ("\n \t\r\n# 10.0.0.1 fec0::1\n   # x\n", &[]),
        ("10.0.0.1 fec0::1", &["10.0.0.1 fec0::1"]),
        ("10.0.0.1\tfec0::1\r\n", &["10.0.0.1 fec0::1"]),
        ("  10.0.0.1   fec0::1   # n1\n", &["10.0.0.1 fec0::1"]),
        ("10.0.0.1 fec0::1#n1\n", &["10.0.0.1 fec0::1"]),
        ("FD00::0001 FEC0:0:0:0:0:0:0:1", &["fd00::1 fec0::1"]),
        ("::ffff:10.0.0.1 fec0::1", &["10.0.0.1 fec0::1"]),
        (
            "10.0.0.1 fec0::1 qpn 0x48 pkey 0x8001 lifetime 60",
            &["10.0.0.1 fec0::1 qpn 72 pkey 0x8001 lifetime 60"],
        ),
        (
            "10.0.0.1 fec0::1 lifetime 0 pkey 1 qpn 16777215",
            &["10.0.0.1 fec0::1 qpn 16777215 pkey 0x0001"],
        ),
        ("n1 fec0::1", &["10.0.0.1 fec0::1", "fd00::1 fec0::1"]),
        (
            "N1 fec0::1 qpn 2",
            &["10.0.0.1 fec0::1 qpn 2", "fd00::1 fec0::1 qpn 2"],
        ),
        // By address and by name, as ibacm's files have it.
        (
            "10.0.0.1 fec0::1\nn1 fec0::1\n",
            &["10.0.0.1 fec0::1", "fd00::1 fec0::1"],
        ),
        (
            "n1 fec0::1\n10.0.0.1 fec0::1\n",
            &["10.0.0.1 fec0::1", "fd00::1 fec0::1"],
        ),
        // The order is the files'.
        (
            "10.0.0.9 fec0::9\nn1 fec0::1\n10.0.0.3 fec0::3",
            &[
                "10.0.0.9 fec0::9",
                "10.0.0.1 fec0::1",
                "fd00::1 fec0::1",
                "10.0.0.3 fec0::3",
            ],
        ),
        // A GID of RoCE, and one of the subnet.
        ("10.0.0.1 ::ffff:10.77.0.1", &["10.0.0.1 ::ffff:10.77.0.1"]),
        (
            "10.0.0.1 fe80::2:c903:f:a1b1",
            &["10.0.0.1 fe80::2:c903:f:a1b1"],
        ),
    ];
    for (text, wanted) in table {
        assert_eq!(lines(text), *wanted, "{text:?}");
    }
}

#[test]
fn lines_with_an_error() {
    let table: &[(&str, &str)] = &[
        ("10.0.0.1", "the GID is missing"),
        ("10.0.0.1 # fec0::1", "the GID is missing"),
        (
            "10.0.0.300 fec0::1",
            "'10.0.0.300' is neither an IP address nor a host's name",
        ),
        ("10.0.1 fec0::1", "'10.0.1' is neither"),
        // Other ways of inet_aton(3) to write 10.0.0.1.
        ("0x0a000001 fec0::1", "'0x0a000001' is neither"),
        ("0X0A000001 fec0::1", "'0X0A000001' is neither"),
        ("0xa.0.0.0x1 fec0::1", "'0xa.0.0.0x1' is neither"),
        ("10.0x1 fec0::1", "'10.0x1' is neither"),
        // Names with such parts.
        ("0x fec0::1", "the name '0x' cannot be resolved"),
        ("0xn1 fec0::1", "the name '0xn1' cannot be resolved"),
        ("0xa.n1 fec0::1", "the name '0xa.n1' cannot be resolved"),
        ("a000001 fec0::1", "the name 'a000001' cannot be resolved"),
        ("fd00::g fec0::1", "'fd00::g' is neither"),
        ("fe80::1%ib0 fec0::1", "'fe80::1%ib0' is neither"),
        ("10.0.0.1/24 fec0::1", "'10.0.0.1/24' is neither"),
        ("-n1 fec0::1", "'-n1' is neither"),
        ("n!1 fec0::1", "'n!1' is neither"),
        ("0.0.0.0 fec0::1", "0.0.0.0: the address is unspecified"),
        ("0.1.2.3 fec0::1", "0.1.2.3: the address is unspecified"),
        (":: fec0::1", "::: the address is unspecified"),
        (
            "224.0.0.1 fec0::1",
            "224.0.0.1: the address is a multicast address",
        ),
        (
            "ff02::1 fec0::1",
            "ff02::1: the address is a multicast address",
        ),
        (
            "127.0.0.1 fec0::1",
            "127.0.0.1: the address is a loopback address",
        ),
        ("::1 fec0::1", "::1: the address is a loopback address"),
        (
            "255.255.255.255 fec0::1",
            "255.255.255.255: the address is the broadcast address",
        ),
        ("10.0.0.1 n1", "'n1' is not a GID"),
        ("10.0.0.1 10.0.0.2", "'10.0.0.2' is not a GID"),
        (
            "10.0.0.1 0xfec0000000000001",
            "'0xfec0000000000001' is not a GID",
        ),
        ("10.0.0.1 ::", "'::': the GID is the reserved one"),
        ("10.0.0.1 ff12:401b::1", "the GID is a multicast GID"),
        ("10.0.0.1 ::1", "'::1': the GID is the loopback GID"),
        ("10.0.0.1 fec0::1 fec0::2", "'fec0::2' is not known here"),
        ("10.0.0.1 fec0::1 QPN 5", "'QPN' is not known here"),
        ("10.0.0.1 fec0::1 qpn", "qpn needs a number after it"),
        ("10.0.0.1 fec0::1 pkey", "pkey needs a number after it"),
        (
            "10.0.0.1 fec0::1 lifetime",
            "lifetime needs a number after it",
        ),
        ("10.0.0.1 fec0::1 qpn 5 qpn 5", "qpn is given twice"),
        (
            "10.0.0.1 fec0::1 lifetime 0 lifetime 1",
            "lifetime is given twice",
        ),
        (
            "10.0.0.1 fec0::1 qpn 0",
            "qpn '0': a queue pair number is from 2",
        ),
        (
            "10.0.0.1 fec0::1 qpn 1",
            "qpn '1': a queue pair number is from 2",
        ),
        ("10.0.0.1 fec0::1 qpn 0x1000000", "qpn '0x1000000'"),
        ("10.0.0.1 fec0::1 qpn -5", "qpn '-5'"),
        ("10.0.0.1 fec0::1 qpn +5", "qpn '+5'"),
        ("10.0.0.1 fec0::1 qpn 0x+5", "qpn '0x+5'"),
        ("10.0.0.1 fec0::1 qpn 5x", "qpn '5x'"),
        ("10.0.0.1 fec0::1 qpn 0x", "qpn '0x'"),
        (
            "10.0.0.1 fec0::1 qpn 99999999999999999999",
            "qpn '99999999999999999999'",
        ),
        ("10.0.0.1 fec0::1 pkey 0", "pkey '0': a P_Key is from 1"),
        (
            "10.0.0.1 fec0::1 pkey 0x8000",
            "pkey '0x8000': a P_Key is from 1",
        ),
        (
            "10.0.0.1 fec0::1 pkey 0x10000",
            "pkey '0x10000': a P_Key is from 1",
        ),
        (
            "10.0.0.1 fec0::1 lifetime 4294967296",
            "lifetime '4294967296': a lifetime is a number",
        ),
        (
            "10.0.0.1 fec0::1 lifetime 1h",
            "lifetime '1h': a lifetime is a number",
        ),
        ("m1 fec0::1", "the name 'm1' cannot be resolved: unknown"),
    ];
    for (text, wanted) in table {
        let errors = parse(&[("f", text)]).unwrap_err();
        let [error] = errors.as_slice() else {
            panic!("{text:?}: {errors:?}");
        };
        assert!(error.starts_with("f:1: "), "{text:?}: {error}");
        assert!(error.contains(wanted), "{text:?}: {error}");
    }
}

#[test]
fn every_error_is_reported_in_the_order_of_the_files() {
    let first = "10.0.0.1 fec0::1\nx y\n\n10.0.0.2 fec0::2 qpn 1\nm1 fec0::3\n";
    let second = "# none here\n10.0.0.1 fec0::1\n";
    let errors = parse(&[("a", first), ("b", second)]).unwrap_err();
    assert_eq!(
        errors,
        [
            "a:2: 'y' is not a GID: write it like an IPv6 address, as in fec0:0:0:1::201:2ff",
            "a:4: qpn '1': a queue pair number is from 2 to 0xffffff",
            "a:5: the name 'm1' cannot be resolved: unknown",
            "b:2: 10.0.0.1 is there already: a:1",
        ]
    );
}

#[test]
fn a_duplicate_address_is_reported_with_both_locations() {
    let table: &[(&str, &str, &[&str])] = &[
        // In one file, alike and not alike.
        (
            "10.0.0.1 fec0::1\n10.0.0.1 fec0::1",
            "",
            &["a:2: 10.0.0.1 is there already: a:1"],
        ),
        (
            "10.0.0.1 fec0::1\n10.0.0.1 fec0::2",
            "",
            &["a:2: 10.0.0.1 is there already: a:1"],
        ),
        // In two.
        (
            "10.0.0.1 fec0::1",
            "\n10.0.0.1 fec0::2",
            &["b:2: 10.0.0.1 is there already: a:1"],
        ),
        // Written in another way.
        (
            "fd00::1 fec0::1",
            "fd00:0::1 fec0::1",
            &["b:1: fd00::1 is there already: a:1"],
        ),
        (
            "10.0.0.1 fec0::1",
            "::ffff:10.0.0.1 fec0::1",
            &["b:1: 10.0.0.1 is there already: a:1"],
        ),
        // A name that says something else; its other address is not there.
        (
            "10.0.0.1 fec0::1",
            "n1 fec0::2",
            &["b:1: 10.0.0.1 is there already: a:1"],
        ),
        (
            "10.0.0.1 fec0::1",
            "n1 fec0::1 qpn 5",
            &["b:1: 10.0.0.1 is there already: a:1"],
        ),
        // Three times: each error has the location of the first.
        (
            "10.0.0.1 fec0::1\n10.0.0.1 fec0::2",
            "10.0.0.1 fec0::3",
            &[
                "a:2: 10.0.0.1 is there already: a:1",
                "b:1: 10.0.0.1 is there already: a:1",
            ],
        ),
    ];
    for (first, second, wanted) in table {
        let errors = parse(&[("a", first), ("b", second)]).unwrap_err();
        assert_eq!(errors, *wanted, "{first:?} {second:?}");
    }
}

#[test]
fn an_unreadable_file_is_reported_first() {
    let mut files = FileSet::new();
    files.add("a", b"x", |_| {});
    files.add_unreadable("b", "there is no such file");
    let errors = files.finish(&Nodes, || {}).unwrap_err();
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(texts[0], "b: there is no such file");
    assert!(texts[1].starts_with("a:1: the GID is missing"));
}

#[test]
fn errors_show_no_control_characters() {
    let mut files = FileSet::new();
    let long = format!("10.0.0.1 {}\n", "x".repeat(1000));
    files.add(
        "a",
        &[
            b"10.0.0.1 \xfffec0::1\n10.0.0.1 fec0\x1b[31m\n",
            long.as_bytes(),
        ]
        .concat(),
        |_| {},
    );
    let errors = files.finish(&Nodes, || {}).unwrap_err();
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts[0],
        "a:1: it is not text (a byte 0xff where there should be UTF-8)"
    );
    assert!(
        texts[1].starts_with("a:2: 'fec0?[31m' is not a GID"),
        "{}",
        texts[1]
    );
    assert!(
        texts[2].starts_with(&format!("a:3: '{}…' is not a GID", "x".repeat(60))),
        "{}",
        texts[2]
    );
}

#[test]
fn a_link_local_gid_is_noted() {
    let mut files = FileSet::new();
    files.add(
        "a",
        b"10.0.0.1 fec0::1\n10.0.0.2 fe80::1\nn3 fe80::3\n",
        |_| {},
    );
    let notes: Vec<String> = files.notes().iter().map(ToString::to_string).collect();
    assert_eq!(notes.len(), 2);
    assert!(notes[0].starts_with("a:2: a GID of fe80::/64"));
    assert!(notes[1].starts_with("a:3: a GID of fe80::/64"));
    assert_eq!(files.name_count(), 1);
    assert_eq!(files.finish(&Nodes, || {}).unwrap().len(), 4);
}

#[test]
fn only_files_without_a_comment_are_blank() {
    let table: &[(&[&str], bool)] = &[
        (&[], true),
        (&[""], true),
        (&["\n", " \t\r\n\n"], true),
        (&["", "# none"], false),
        (&["10.0.0.1 fec0::1\n", ""], false),
        (&["x"], false),
    ];
    for (texts, wanted) in table {
        let mut files = FileSet::new();
        for text in *texts {
            files.add("f", text.as_bytes(), |_| {});
        }
        assert_eq!(files.is_blank(), *wanted, "{texts:?}");
    }
}

#[test]
fn progress_adds_up_to_the_file() {
    let text = "10.0.0.1 fec0::1 # a comment that is long\n".repeat(100_000);
    let mut calls = 0;
    let mut bytes = 0;
    FileSet::new().add("a", text.as_bytes(), |more| {
        calls += 1;
        bytes += more;
    });
    assert_eq!(bytes, text.len());
    assert!((2..20).contains(&calls));
}
