#!/bin/sh
# One step of an SDK's CI: judges the SDK behind an adapter, and ends with the exit code of the suite.
# usage: conformance.sh ADAPTER [OPTION of stc run]…
#   ADAPTER  the command that starts the adapter, such as 'java -jar adapter.jar'
#   STC      the program, where it is not `stc`
# The reports are in target/conformance-report/ (JUnit XML, JSON, Markdown, HTML, CTRF, badge).
set -eu
adapter=${1:?usage: conformance.sh ADAPTER [OPTION of stc run]…}
shift
reports=${REPORTS:-target/conformance-report}
# What is shown below is this run's.
rm -f "$reports/report.md"
code=0
# STC may be several words.
${STC:-stc} run --client "$adapter" --reports "$reports" "$@" || code=$?
if [ -n "${GITHUB_STEP_SUMMARY:-}" ] && [ -f "$reports/report.md" ]; then
  cat "$reports/report.md" >>"$GITHUB_STEP_SUMMARY"
fi
exit "$code"
