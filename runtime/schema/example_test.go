package schema

import "fmt"

// Forty levels that each try the next one twice would take 2^40 steps.
func Example_validationSteps() {
	c, err := compileSchema([]byte(doubling(40, `"l%d":{"anyOf":[{"$ref":"#/$defs/l%[2]d"},{"$ref":"#/$defs/l%[2]d"}]}`)))
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = c.validate([]byte(`1`))
	fmt.Println(err)
	// Output: takes too many steps to check
}
