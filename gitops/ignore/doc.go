// Package ignore reads ignore rules (gitignore(5)) and the patterns of attributes (gitattributes(5)).
//
// A [Pattern] is matched in process. It is for the user's own patterns, and for patterns that hold an agent's file
// when they match. Where git's own answer about an agent's file decides, this package runs git in an empty
// repository ([ShowsFolder], [Rules]).
package ignore
