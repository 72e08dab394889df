/*
Package report shows the record of a run: the run in one sentence, what to look at first, and what could not be seen.

[Of] makes a [View] from a record. It reads nothing else, so that a report can be made wherever the record is. [View.HTML] is
one file without scripts, which loads nothing, and has at most [MaxHTML] bytes. [View.Print] is for terminals. [View.JSON] is
version 1 of report.json. All text of a record is [gitops.Text], since an agent may have written it.

# The questions

A reader who has never seen a report must be able to answer these questions from it alone, each within a minute. They were
written before the report. Each one is a row of [View.Answers].

 1. What ran, for how long, and how did it end?
 2. Which commits landed, on which branch, and which ones wait for what?
 3. Which tests ran, did they pass, and was anything committed after the last one?
 4. Which hosts did it reach, and how much did it send?
 5. What was refused, and why?
 6. Which files changed, and which of these are outside of what the command names?
 7. Are the user's own files as before, and which checkpoint leads back?
 8. What is unknown, because nothing could see it?
*/
package report
