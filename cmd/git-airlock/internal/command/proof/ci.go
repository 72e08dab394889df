package proof

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/git-airlock/git-airlock/cmd/git-airlock/internal/cmdline"
)

func ciCommand() *cli.Command {
	return cmdline.Command(&cli.Command{
		Name: "ci", Usage: "print the lines with which CI verifies commits",
		UsageText: "git airlock ci [--github | --gitlab]",
		Description: "Prints a workflow for GitHub Actions, and a job for GitLab CI. They fetch the whole history and the notes, and run \"git airlock\n" +
			"verify\" on the commits of a pull request or of a push. Without an option both are printed.\n\n" +
			"Commits without evidence pass, such as those that people make. The notes are those of the repository that runs the job: \"git\n" +
			"airlock share --evidence\" brings them there before the branch is pushed.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "github", Usage: "print the workflow for GitHub Actions"},
			&cli.BoolFlag{Name: "gitlab", Usage: "print the job for GitLab CI"},
		},
		Action: func(c *cli.Context) error {
			text, both := "", c.Bool("github") == c.Bool("gitlab")
			if both || c.Bool("github") {
				text += githubWorkflow
			}
			if both {
				text += "\n"
			}
			if both || c.Bool("gitlab") {
				text += gitlabJob
			}
			_, err := fmt.Fprint(c.App.Writer, text)
			return err
		},
	}, cmdline.Takes{})
}

// install is the command that installs the program. A user of these lines should name a version instead of latest.
const install = "go install github.com/git-airlock/git-airlock/cmd/git-airlock@latest"

// Neither a new branch nor one that was forced has a commit before the push that a clone contains. GitHub and GitLab still serve the
// commit after a forced push, and a new branch is compared with the default branch.
const githubWorkflow = `# .github/workflows/airlock.yml
name: airlock
on: [push, pull_request]
permissions:
  contents: read
jobs:
  verify:
    runs-on: ubuntu-latest
    env:
      BASE: ${{ github.event.pull_request.base.sha || github.event.before }}
      TIP: ${{ github.event.pull_request.head.sha || github.sha }}
      DEFAULT: ${{ github.event.repository.default_branch }}
    steps:
      - uses: actions/checkout@v4
        with:
          fetch-depth: 0
      - uses: actions/setup-go@v5
        with:
          go-version: stable
          cache: false
      - run: ` + install + `
      - run: |
          git fetch origin 'refs/notes/airlock*:refs/notes/airlock*' '+refs/airlock/policy*:refs/airlock/policy*'
          git cat-file -e "$BASE^{commit}" || git fetch origin "$BASE" || { git fetch origin "$DEFAULT"; BASE=FETCH_HEAD; }
          git airlock verify --require signed,contained --ignore-missing "$BASE..$TIP"
`

const gitlabJob = `# .gitlab-ci.yml
airlock:
  image: golang
  rules:
    - if: $CI_PIPELINE_SOURCE == "merge_request_event"
    - if: $CI_PIPELINE_SOURCE == "push"
  variables:
    GIT_DEPTH: "0"
  script:
    - ` + install + `
    - |
      BASE=${CI_MERGE_REQUEST_DIFF_BASE_SHA:-$CI_COMMIT_BEFORE_SHA}
      TIP=${CI_MERGE_REQUEST_SOURCE_BRANCH_SHA:-$CI_COMMIT_SHA}
      DEFAULT=$CI_DEFAULT_BRANCH
      git fetch origin 'refs/notes/airlock*:refs/notes/airlock*' '+refs/airlock/policy*:refs/airlock/policy*'
      git cat-file -e "$BASE^{commit}" || git fetch origin "$BASE" || { git fetch origin "$DEFAULT"; BASE=FETCH_HEAD; }
      git airlock verify --require signed,contained --ignore-missing "$BASE..$TIP"
`
