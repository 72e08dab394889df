package quarantine

import "encoding/binary"

// deltaHead is enough for the two sizes at the beginning of a delta.
const deltaHead = 20

// deltaSizes reads the sizes at the beginning of a delta: of its base, and of the object that it makes.
func deltaSizes(delta []byte) (base, result int64, rest []byte, err error) {
	if base, rest, err = deltaSize(delta); err != nil {
		return 0, 0, nil, err
	}
	result, rest, err = deltaSize(rest)
	return base, result, rest, err
}

// deltaSize reads one of the two sizes at the beginning of a delta.
func deltaSize(delta []byte) (size int64, rest []byte, err error) {
	for shift := 0; len(delta) > 0 && shift < 63; shift += 7 {
		c := delta[0]
		delta = delta[1:]
		size |= int64(c&0x7f) << shift
		if c&0x80 == 0 {
			return size, delta, nil
		}
	}
	return 0, nil, errPack
}

// applyDelta returns the object that a delta makes from its base (gitformat-pack(5), deltified representation), or an
// error if it is larger than storeLimit. go-git's function for this grows its buffer again and again: for files of
// 200 KB, that was half of the gate's time.
func applyDelta(base, delta []byte) ([]byte, error) {
	from, size, delta, err := deltaSizes(delta)
	if err != nil || from != int64(len(base)) || size > storeLimit {
		return nil, errPack
	}
	made := make([]byte, 0, size)
	for len(delta) > 0 {
		c := delta[0]
		delta = delta[1:]
		var next []byte
		switch {
		case c&0x80 != 0: // a part of the base
			var offset, length uint64
			if offset, delta, err = sparse(c&0x0f, delta); err == nil {
				length, delta, err = sparse(c>>4&0x07, delta)
			}
			if length == 0 {
				length = 0x10000
			}
			if err != nil || offset+length > uint64(len(base)) {
				return nil, errPack
			}
			next = base[offset : offset+length]
		case c == 0 || int(c) > len(delta): // 0 is reserved
			return nil, errPack
		default: // new bytes
			next, delta = delta[:c], delta[c:]
		}
		if len(made)+len(next) > cap(made) {
			return nil, errPack
		}
		made = append(made, next...)
	}
	if int64(len(made)) != size {
		return nil, errPack
	}
	return made, nil
}

// sparse reads a number of at most four bytes, the lowest first. Only the bytes that present marks are stored. The
// others are 0.
func sparse(present byte, in []byte) (number uint64, rest []byte, err error) {
	var bytes [8]byte
	for i := range 4 {
		if present&(1<<i) == 0 {
			continue
		}
		if len(in) == 0 {
			return 0, nil, errPack
		}
		bytes[i], in = in[0], in[1:]
	}
	return binary.LittleEndian.Uint64(bytes[:]), in, nil
}
