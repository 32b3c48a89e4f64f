package permit

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/assent-dev/assent/value"
)

// ErrInexact says that arguments hold a number which not every language
// reads as the same one, so that no permit can be for them.
var ErrInexact = errors.New("the arguments hold a number that not every language reads as the same")

// Digest is "sha256:" and the digest of a call's arguments in the form
// of RFC 8785. The arguments are one JSON object, in UTF-8, without a
// name twice. ErrInexact says that two readers of them could differ.
func Digest(arguments []byte) (string, error) {
	v, err := value.Parse(arguments, value.DefaultLimits())
	if err != nil {
		return "", fmt.Errorf("the arguments: %w", err)
	}
	if v.Kind != value.Object {
		return "", errors.New("the arguments: expected an object")
	}
	if err := exact(v); err != nil {
		return "", err
	}
	return v.Digest().String(), nil
}

// exact holds every number within v to what a double keeps, and to the
// integers that have no neighbour nearer than 1 (RFC 7493 §2.2).
func exact(v value.Value) error {
	switch v.Kind {
	case value.Number:
		return exactNumber(v.Num)
	case value.Array:
		for _, item := range v.Items {
			if err := exact(item); err != nil {
				return err
			}
		}
	case value.Object:
		for _, m := range v.Members {
			if err := exact(m.Value); err != nil {
				return err
			}
		}
	}

	return nil
}

func exactNumber(n value.Num) error {
	const largest = 1<<53 - 1
	if n.Cmp(value.IntNum(largest)) > 0 || n.Cmp(value.IntNum(-largest)) < 0 {
		return fmt.Errorf("%w: %s is beyond 2^53", ErrInexact, n)
	}
	double, err := strconv.ParseFloat(n.String(), 64)
	if near, ok := value.FloatNum(double); err != nil || !ok || near.Cmp(n) != 0 {
		return fmt.Errorf("%w: %s has more digits than a double keeps", ErrInexact, n)
	}
	return nil
}
