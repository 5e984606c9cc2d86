package router

import "reflect"

// AllTexts are those of every language, by their names.
func AllTexts() map[string]map[string]string {
	all := map[string]map[string]string{}
	for lang, t := range languages() {
		all[lang] = map[string]string{}
		v := reflect.ValueOf(t)
		for i := range v.NumField() {
			all[lang][v.Type().Field(i).Name] = v.Field(i).String()
		}
	}
	return all
}
