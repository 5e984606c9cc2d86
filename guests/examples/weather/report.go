package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/hutch-run/hutch/guests/sdk"
	"github.com/hutch-run/hutch/guests/sdk/fetch"
)

// unitsOf is what the operator set as units, metric if nothing.
func unitsOf(c *sdk.Call) (string, error) {
	switch units, set := c.Config("units"); {
	case !set || units == "metric":
		return "metric", nil
	case units == "imperial":
		return units, nil
	default:
		return "", fmt.Errorf("the operator has set units to %q: allowed are metric and imperial", units)
	}
}

// report is what the service answers, as far as it is used here.
type report struct {
	Data struct {
		Time   time.Time `json:"time"`
		Values struct {
			Temperature   float64 `json:"temperature"`
			WindSpeed     float64 `json:"windSpeed"`
			Humidity      float64 `json:"humidity"`
			RainIntensity float64 `json:"rainIntensity"`
		} `json:"values"`
	} `json:"data"`
	Location struct {
		Name string `json:"name"`
	} `json:"location"`
}

// explain turns what a service means by a status into what a model can do about it.
func explain(err error, place string) error {
	answer, ok := errors.AsType[*fetch.StatusError](err)
	if !ok {
		return err // refused, or not answered: the text says what to do
	}
	switch answer.Response.Status {
	case 400, 404:
		return fmt.Errorf("the service knows no place %q: try the nearest town, or latitude and longitude", place)
	case 401, 403:
		return errors.New("the service does not take the key: the operator has to store another as weather_key")
	case 429:
		return errors.New("the service was asked too often: try again in an hour")
	}
	return err
}
