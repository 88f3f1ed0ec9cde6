package link

import (
	"crypto/hmac"
	"crypto/rand"
	"encoding/binary"
	"time"
)

// NonceTTL is how long a form stays valid.
const NonceTTL = 10 * time.Minute

const nonceSize = 4 + 12 + macSize

// Nonce makes a value for one form of a review's page. It is valid only together
// with the cookie that the page sets.
func Nonce(key []byte, review, cookie string, now time.Time) string {
	b := make([]byte, 16, nonceSize)
	binary.BigEndian.PutUint32(b, uint32(now.Unix()))
	_, _ = rand.Read(b[4:]) // never fails (crypto/rand, Go 1.24)
	return encoding.EncodeToString(append(b, nonceMAC(key, b, review, cookie)...))
}

// CheckNonce reports whether the key has made the nonce for the review and cookie
// within the last [NonceTTL]. The caller must ensure that it is used once.
func CheckNonce(key []byte, nonce, review, cookie string, now time.Time) bool {
	b, err := decode(nonce)
	if err != nil || len(b) != nonceSize || cookie == "" {
		return false
	}
	made := time.Unix(int64(binary.BigEndian.Uint32(b)), 0)
	return hmac.Equal(nonceMAC(key, b[:16], review, cookie), b[16:]) &&
		!now.Before(made) && now.Before(made.Add(NonceTTL))
}

func nonceMAC(key, b []byte, review, cookie string) []byte {
	return mac(key, nonceLabel, b, []byte(review), []byte{0}, []byte(cookie))
}
