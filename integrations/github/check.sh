#!/usr/bin/env bash
# Checks the files of a pull request, tells what the change asks people about, and keeps one comment up to date. Needs bash, git, curl and jq, which
# GitHub's runners have. What it takes comes from the environment, as action.yml sets it; words are never run as code.
set -euo pipefail

read -ra paths <<<"${AGF_PATHS:-}"
read -ra arguments <<<"${AGF_ARGUMENTS:-}"
sarif=$RUNNER_TEMP/agf-validate.sarif
table=$RUNNER_TEMP/agf-validate.md
status=0

"$AGF_VALIDATE" "${arguments[@]}" --format github "${paths[@]}" || status=$?
"$AGF_VALIDATE" "${arguments[@]}" --format sarif "${paths[@]}" >"$sarif" || true
echo "sarif=$sarif" >>"$GITHUB_OUTPUT"
if [ -n "$(git ls-files -- '*.test.yaml')" ] && ! "$AGF_VALIDATE" test .; then
	echo "::error::tests of agents and policies fail, see the log of the check"
	if [ "$status" -lt 1 ]; then status=1; fi
fi

# comment puts the table into the one comment that begins with a mark, or makes it. Where nothing changes and no comment is, none is made.
comment() {
	local mark='<!-- agf-validate -->' api=$GITHUB_API_URL/repos/$GITHUB_REPOSITORY found= page body
	call() { curl --fail --silent --show-error --max-time 30 -H "Authorization: Bearer $AGF_TOKEN" -H 'Accept: application/vnd.github+json' "$@"; }
	for page in {1..20}; do
		body=$(call "$api/issues/$AGF_PULL_REQUEST/comments?per_page=100&page=$page")
		found=$(jq -r --arg mark "$mark" 'map(select(.body | startswith($mark))) | first | .id // empty' <<<"$body")
		if [ -n "$found" ] || [ "$(jq length <<<"$body")" -lt 100 ]; then break; fi
	done
	body=$(jq -n --arg mark "$mark" --rawfile table "$table" '{body: ($mark + "\n" + $table)[:65000]}')
	if [ -n "$found" ]; then
		call -X PATCH -d "$body" "$api/issues/comments/$found" >/dev/null
	elif ! grep -q '^\*\*Posture: equivalent' "$table"; then
		call -X POST -d "$body" "$api/issues/$AGF_PULL_REQUEST/comments" >/dev/null
	fi
}

if [ -n "${AGF_BASE:-}" ]; then
	loosening=()
	if [ "${AGF_ALLOW_LOOSENING:-false}" = true ]; then loosening=(--allow-loosening); fi
	verdict=0
	"$AGF_VALIDATE" diff "${loosening[@]}" --format markdown "$AGF_BASE..HEAD" -- "${paths[@]:-.}" >"$table" || verdict=$?
	echo "verdict=$verdict" >>"$GITHUB_OUTPUT"
	if [ "$verdict" = 1 ]; then
		echo "::error::the change asks less than before, see the summary"
	elif [ "$verdict" = 2 ]; then
		echo "::error::the change could not be compared, see the log of the check"
		echo '**Posture: could not be compared**, see the log of the check.' >"$table"
	fi
	cat "$table" >>"$GITHUB_STEP_SUMMARY"
	if [ "${AGF_COMMENT:-true}" = true ] && [ -n "${AGF_PULL_REQUEST:-}" ]; then
		comment || echo "::warning::the comment could not be written: a token with pull-requests: write is needed"
	fi
	if [ "$verdict" -gt "$status" ]; then status=$verdict; fi
fi
exit "$status"
