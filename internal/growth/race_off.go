//go:build !race

package growth

const slower = 1
