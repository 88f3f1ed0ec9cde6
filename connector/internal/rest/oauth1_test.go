package rest

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// TestOracleVectors signs the example requests of Oracle's documentation of token-based
// authentication.
func TestOracleVectors(t *testing.T) {
	t.Parallel()
	a := OAuth1{
		Realm:          "123456",
		ConsumerKey:    "ef40afdd8abaac111b13825dd5e5e2ddddb44f86d5a0dd6dcf38c20aae6b67e4",
		ConsumerSecret: "d26ad321a4b2f23b0741c8d38392ce01c3e23e109df6c96eac6d099e9ab9e8b5",
		Token:          "2b0ce516420110bcbd36b69e99196d1b7f6de3c6234c5afb799b73d87569f5cc",
		TokenSecret:    "c29a677df7d5439a458c063654187e3d678d73aca8e3c9d8bea1478a3eb0d295",
		nonce:          "fjaLirsIcCGVZWzBX0pg",
		Now:            func() time.Time { return time.Unix(1508242306, 0) },
	}
	for _, v := range []struct{ method, url, signature string }{
		{
			http.MethodPost, "https://123456.restlets.api.netsuite.com/app/site/hosting/restlet.nl" +
				"?script=6&deploy=1&customParam=someValue&testParam=someOtherValue",
			"+KK4SKNgz4ZiILGLwOMtfYlgcXSy1eis8ldE9X90azQ=",
		},
		{
			http.MethodGet, "https://123456.suitetalk.api.netsuite.com/services/rest/record/v1/employee/40",
			"B5OIWznZ2YP0OB7VrJrGkYsTh+8H+5T9Hag+o92q0zY=",
		},
		{ // the host in lower case and without the default port is signed (RFC 5849, section 3.4.1.2)
			http.MethodGet, "https://123456.SuiteTalk.api.netsuite.com:443/services/rest/record/v1/employee/40",
			"B5OIWznZ2YP0OB7VrJrGkYsTh+8H+5T9Hag+o92q0zY=",
		},
	} {
		u, err := url.Parse(v.url)
		if err != nil {
			t.Fatal(err)
		}
		r := NewRequest(v.method, u)
		a.Sign(r)
		header := r.Header.Get("Authorization")
		if want := `oauth_signature="` + encode(v.signature) + `"`; !strings.Contains(header, want) {
			t.Errorf("%s %s: %s lacks %s", v.method, v.url, header, want)
		}
		if strings.Contains(header, "script") || strings.Contains(header, "customParam") {
			t.Errorf("the header contains parameters of the query: %s", header)
		}
		if !strings.HasPrefix(header, `OAuth realm="123456", `) {
			t.Errorf("no realm: %s", header)
		}
	}
}

// TestParametersAreSortedByName: a name that begins with another one comes after it, whatever follows (RFC 5849,
// section 3.4.1.3.2).
func TestParametersAreSortedByName(t *testing.T) {
	t.Parallel()
	u, err := url.Parse("https://a.example/b")
	if err != nil {
		t.Fatal(err)
	}
	got := baseString(http.MethodGet, u, [][2]string{{"item2", "1"}, {"item", "2"}, {"item", "1"}, {"item-x", "0"}})
	if want := "GET&https%3A%2F%2Fa.example%2Fb&item%3D1%26item%3D2%26item-x%3D0%26item2%3D1"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
