package main

import (
	"net/url"
	"time"

	"github.com/hutch-run/hutch/guests/sdk"
	"github.com/hutch-run/hutch/guests/sdk/fetch"
)

var weather = sdk.Define(sdk.Spec{
	Name:  "weather_now",
	Title: "Weather now",
	Description: "Tells the weather at a place as it is now: temperature, wind, humidity and rain, and in which units. Use it for now " +
		"alone; it knows no forecast.",
	ReadOnly: true,
}, askWeather)

type weatherInput struct {
	Place string `json:"place" doc:"A town, such as Lisbon or Paris, Texas, or latitude and longitude, such as 38.7,-9.1." min:"1" max:"100"`
}

type weatherOutput struct {
	Place       string    `json:"place" doc:"What the service took the place for."`
	At          time.Time `json:"at"`
	Units       string    `json:"units" enum:"metric,imperial"`
	Temperature float64   `json:"temperature" doc:"In degrees Celsius; imperial: Fahrenheit."`
	Wind        float64   `json:"wind" doc:"In metres a second; imperial: miles an hour."`
	Humidity    float64   `json:"humidity" doc:"In percent."`
	Rain        float64   `json:"rain" doc:"In millimetres an hour; imperial: inches."`
}

// askWeather sends no key: the host puts it into the header that Requests names.
func askWeather(c *sdk.Call, in weatherInput) (weatherOutput, error) {
	units, err := unitsOf(c)
	if err != nil {
		return weatherOutput{}, err
	}
	query := url.Values{"location": {in.Place}, "units": {units}}
	var r report
	if err := fetch.GetJSON(c, "https://"+host+path+"?"+query.Encode(), &r); err != nil {
		return weatherOutput{}, explain(err, in.Place)
	}
	now := r.Data.Values
	return weatherOutput{Place: r.Location.Name, At: r.Data.Time, Units: units, Temperature: now.Temperature, Wind: now.WindSpeed,
		Humidity: now.Humidity, Rain: now.RainIntensity}, nil
}
