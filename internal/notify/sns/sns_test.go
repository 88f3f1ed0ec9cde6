package sns

import (
	"strings"
	"testing"
)

// TestSubject: a subject is ASCII, not too long, and has no space at its ends.
func TestSubject(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 98) // SNS takes less than 100 characters
	for text, want := range map[string]string{
		"Price of café": "Price of caf?", "  a\nb ": "a?b", " " + long + "yz": long + "y", long + " z": long,
	} {
		if got := subject(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestDefaultURL: without a URL, messages go to SNS in the topic's region and partition.
func TestDefaultURL(t *testing.T) {
	t.Parallel()
	for topic, want := range map[string]string{
		"arn:aws:sns:eu-central-1:123456789012:approvals":         "https://sns.eu-central-1.amazonaws.com/",
		"arn:aws-cn:sns:cn-north-1:123456789012:approvals.fifo":   "https://sns.cn-north-1.amazonaws.com.cn/",
		"arn:aws-us-gov:sns:us-gov-west-1:123456789012:approvals": "https://sns.us-gov-west-1.amazonaws.com/",
	} {
		c, err := New(Config{Topic: topic, AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "s3cret"})
		if err != nil {
			t.Fatalf("%s: %v", topic, err)
		}
		if c.url != want {
			t.Errorf("%s: %s, want %s", topic, c.url, want)
		}
	}
}
