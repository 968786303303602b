package driver

import "fmt"

// usageError is a command line that cannot be followed: exit status 2. Any other error is one of
// the engine, or of the machine under it: exit status 3.
type usageError struct {
	message string
}

func (e *usageError) Error() string {
	return e.message
}

func wrongUse(format string, arguments ...any) error {
	return &usageError{message: fmt.Sprintf(format, arguments...)}
}
