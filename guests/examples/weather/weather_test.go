package main

import (
	"io"
	"net/http"
	"testing"

	"github.com/hutch-run/hutch/guests/sdk/sdktest"
)

// service is the weather service as far as the tool can tell.
func service(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Header.Get("apikey") != "k-123":
		w.WriteHeader(http.StatusUnauthorized)
	case r.URL.Query().Get("location") == "Atlantis":
		w.WriteHeader(http.StatusBadRequest)
	case r.URL.Query().Get("location") == "Busytown":
		w.WriteHeader(http.StatusTooManyRequests)
	case r.URL.String() == "https://api.tomorrow.io/v4/weather/realtime?location=Paris%2C+Texas&units=metric":
		_, _ = io.WriteString(w, `{"data":{"time":"2026-11-30T12:00:00Z","values":{"temperature":7.5,"windSpeed":3,"humidity":81,
			"rainIntensity":0.2,"cloudCover":100}},"location":{"lat":33.66,"lon":-95.55,"name":"Paris, Lamar County"}}`)
	default:
		w.WriteHeader(http.StatusInternalServerError)
	}
}

func ask(t *testing.T, key, place string) sdktest.Result {
	t.Helper()
	host := sdktest.Host{Web: http.HandlerFunc(service), Secrets: map[string]string{"weather_key": key}}
	return host.Call(t, module, "weather_now", map[string]string{"place": place})
}

func TestWeather(t *testing.T) {
	got := ask(t, "k-123", "Paris, Texas")
	want := `{"place":"Paris, Lamar County","at":"2026-11-30T12:00:00Z","units":"metric","temperature":7.5,"wind":3,"humidity":81,"rain":0.2}`
	if got.IsError || string(got.Structured) != want {
		t.Errorf("got %s, want %s", got.Text, want)
	}
}

// An operator may set the units.
func TestWeatherUnits(t *testing.T) {
	for set, want := range map[string]string{
		"imperial": "https://api.tomorrow.io/v4/weather/realtime?location=Lisbon&units=imperial answered 500",
		"metric":   "https://api.tomorrow.io/v4/weather/realtime?location=Lisbon&units=metric answered 500",
		"kelvin":   `the operator has set units to "kelvin": allowed are metric and imperial`,
	} {
		host := sdktest.Host{Web: http.HandlerFunc(service), Secrets: map[string]string{"weather_key": "k-123"}, Config: map[string]string{"units": set}}
		if got := host.Call(t, module, "weather_now", `{"place":"Lisbon"}`); !got.IsError || got.Text != want {
			t.Errorf("%s: got %q, want %q", set, got.Text, want)
		}
	}
}

// The key is the host's: without one nothing is sent, and a wrong one is said to be
// wrong.
func TestWeatherNeedsTheKey(t *testing.T) {
	none := sdktest.Host{Web: http.HandlerFunc(service)}
	if got := none.Call(t, module, "weather_now", `{"place":"Lisbon"}`); got.Text != "http_request: the secret weather_key is not set" {
		t.Errorf("without a key: %q", got.Text)
	}
	if got := ask(t, "wrong", "Lisbon"); got.Text != "the service does not take the key: the operator has to store another as weather_key" {
		t.Errorf("with another key: %q", got.Text)
	}
}

func TestWeatherErrors(t *testing.T) {
	for place, want := range map[string]string{
		"Atlantis": `the service knows no place "Atlantis": try the nearest town, or latitude and longitude`,
		"Busytown": "the service was asked too often: try again in an hour",
		"Lisbon":   "https://api.tomorrow.io/v4/weather/realtime?location=Lisbon&units=metric answered 500",
	} {
		if got := ask(t, "k-123", place); !got.IsError || got.Text != want {
			t.Errorf("%s: got %q, want %q", place, got.Text, want)
		}
	}
}
