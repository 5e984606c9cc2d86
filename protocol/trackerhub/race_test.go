//go:build race

package trackerhub_test

// raced: the race detector keeps books, which take memory.
const raced = true
