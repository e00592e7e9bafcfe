package bundle

// Limits bound what a bundle may cost. A field that is zero or negative means its
// default.
type Limits struct {
	FileBytes     int64 // of the bundle file, which is held in memory while it is opened; 256 MiB
	UnpackedBytes int64 // of all its entries together; 1 GiB
	Entries       int   // files and directories, those without an entry of their own included; 50000
	Ratio         int64 // unpacked bytes to bytes of the file, once more than 1 MiB is unpacked; 100
	PathBytes     int   // of the name of one entry; 1024
	Depth         int   // elements of the name of one entry; 32
}

const (
	// smallArchive is what any bundle may unpack to, whatever the ratio.
	smallArchive = 1 << 20
	// maxManifestBytes bounds manifest.json.
	maxManifestBytes = 1 << 20
	// maxSideFile bounds key and signature files.
	maxSideFile = 64 << 10
	// maxBlock bounds the signature that is embedded in a bundle.
	maxBlock = 1 << 20
)

func (l Limits) withDefaults() Limits {
	if l.FileBytes <= 0 {
		l.FileBytes = 256 << 20
	}
	if l.UnpackedBytes <= 0 {
		l.UnpackedBytes = 1 << 30
	}
	if l.Entries <= 0 {
		l.Entries = 50000
	}
	if l.Ratio <= 0 {
		l.Ratio = 100
	}
	if l.PathBytes <= 0 {
		l.PathBytes = 1024
	}
	if l.Depth <= 0 {
		l.Depth = 32
	}
	return l
}
