//! The program `stc`, as a user meets it: output and exit codes, one file of `tests/cmd/` for each exit code.

#[test]
fn output_and_exit_codes_are_pinned() {
    trycmd::TestCases::new()
        .env("NO_COLOR", "1")
        .insert_var("[VERSION]", env!("CARGO_PKG_VERSION"))
        .expect("the name of a variable is as trycmd wants it")
        .case("tests/cmd/*.trycmd");
}
