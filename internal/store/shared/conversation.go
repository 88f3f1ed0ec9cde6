package shared

import "github.com/gatehouse-dev/gatehouse"

// CommentColumns are the columns of a comment, in ScanComment's order.
const CommentColumns = `number, kind, answers, text, author, author_id, at`

// ScanComment reads [CommentColumns].
func ScanComment(r Row) gatehouse.Comment {
	return gatehouse.Comment{
		Number: int(r.Int()), Kind: gatehouse.CommentKind(r.Text()), Answers: int(r.Int()), Text: r.Text(),
		Author: r.Text(), AuthorID: r.Text(), At: r.Time(),
	}
}
